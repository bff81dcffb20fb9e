"""Converters as processes with nothing in their environment; some perform hostile operations."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # of a process with an empty environment

from helpers.waits import until  # noqa: E402
from service.contract.errors import ConverterUnavailable  # noqa: E402
from workers.sandbox import converter_client  # noqa: E402
from workers.sandbox.converter_client import ConverterSocket  # noqa: E402

HOSTILE = {
    **dict.fromkeys(
        [f"hostile_child:{name}" for name in ("attack", "surroundings", "wait", "crash", "refuse")]
        + ["hostile_child:allocate", "hostile_child:be_killed"],
        "once",
    ),
    "staying_child:serve": "stays",
}


class Running:
    """A converter: `prescore worker converter`, or this module with HOSTILE operations."""

    def __init__(self, socket: Path, log: Path, *options: str, hostile: bool = False) -> None:
        self.socket, self.log = socket, log
        self.address = ConverterSocket(socket)
        self._start = [__file__] if hostile else ["-m", "workers", "worker", "converter"]
        self._options = options
        self.start()

    def start(self) -> None:
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._start, "--socket", str(self.socket), *self._options],
                cwd=ROOT,
                env={},
                stdout=log,
                stderr=log,
            )
        until(self._answers, 20, "a converter that answers")

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self._process.pid)

    def children(self) -> list[psutil.Process]:
        return self.process.children()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait(10)

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        with contextlib.suppress(ConverterUnavailable):
            converter_client.check_converter(self.socket)
            return True
        return False


@contextlib.contextmanager
def running(folder: Path, *options: str, hostile: bool = False) -> Iterator[Running]:
    found = Running(folder / "converter", folder / "converter.log", *options, hostile=hostile)
    try:
        yield found
    finally:
        found.stop()


def _main() -> None:
    from service.kernel import confinement
    from workers.sandbox.converter_protocol import OPERATIONS
    from workers.sandbox.converter_server import Converter, ConverterBounds

    confinement.isolate_process()
    bounds = ConverterBounds(children=2, memory=2_000_000_000)
    socket, operations = Path(sys.argv[2]), {**OPERATIONS, **HOSTILE}
    Converter(bounds, operations=operations, modules=[Path(__file__).parent]).serve(socket)


if __name__ == "__main__":
    _main()
