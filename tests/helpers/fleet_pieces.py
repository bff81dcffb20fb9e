"""The pieces of deploy/compose.yaml as processes on this machine."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
import psutil
import yaml

from helpers.fleet import ROOT
from helpers.waits import free_port, until

DEPLOY = ROOT / "deploy"
SERVICES = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
STOP_SECONDS = float(SERVICES["api"]["stop_grace_period"].removesuffix("s"))


class Pieces:
    """Processes with the commands and variables of compose.yaml."""

    def __init__(
        self,
        home: Path,
        redis_url: str | Mapping[str, str],
        database_url: str | Mapping[str, str],
        **settings: str,
    ) -> None:
        """URLs: one for all, or by the name of the file that compose.yaml gives a piece."""
        self._port = free_port()
        self._log = home / "pieces.log"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._urls = {"PRESCORE_REDIS_URL": redis_url, "PRESCORE_DATABASE_URL": database_url}
        self._settings = {
            "PRESCORE_HOME": str(home),
            "OMP_NUM_THREADS": "1",
            **settings,
        }

    def start(self, name: str, *options: str, **settings: str) -> "subprocess.Popen[bytes]":
        service = SERVICES[name]
        package = "workers" if service["command"][0] == "worker" else "service"
        piece = Path(service["env_file"][0]).stem
        urls = {
            variable: url if isinstance(url, str) else url[piece]
            for variable, url in self._urls.items()
            if isinstance(url, str) or piece in url
        }
        own = {**urls, **service.get("environment", {}), **settings}
        with self._log.open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", package, *service["command"], *options],
                cwd=ROOT,
                env={**os.environ, **self._settings, **own},
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        return process

    def start_api(self) -> None:
        """After migrating; then its health check is asked, as compose does."""
        assert self.start("migrate").wait(60) == 0, self._log.read_text()
        api = self.start("api", "--port", str(self._port))

        def listens() -> bool:
            assert api.poll() is None, self._log.read_text()
            with contextlib.suppress(httpx.TransportError), self.client() as client:
                return client.get("/livez").is_success
            return False

        until(listens, 30, "an API")
        check = SERVICES["api"]["healthcheck"]["test"][2:]
        check = [word.replace(":8000/", f":{self._port}/") for word in check]
        subprocess.run([sys.executable, *check], check=True)

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=60)

    def family(self) -> list[psutil.Process]:
        running = [psutil.Process(one.pid) for one in self._processes if one.poll() is None]
        return [member for one in running for member in (one, *one.children(recursive=True))]

    def stop(self) -> None:
        """All at once; fails where one takes longer than compose.yaml gives it."""
        began = time.monotonic()
        try:
            for process in self._processes:
                process.terminate()
            for process in self._processes:
                process.wait(max(0.1, began + STOP_SECONDS - time.monotonic()))
        finally:
            for process in self._processes:
                process.kill()
                process.wait()
