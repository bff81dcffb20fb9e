"""A whole service in this process, for trials of rules and routes.

The application listens at its own port, as with `prescore api`, so that the client's library and
commands can use it. Database and blobs are real. Tasks are done before the answer to a submission,
by the worker's rules. There is no Redis, no janitor and no child process.
"""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import RLock, Thread
from typing import Any, TextIO

import structlog
import uvicorn

from helpers import stored_records
from helpers.fleet import Served, until
from service.access.oidc.exchange import TokenExchange
from service.contract.assets import AssetFolders
from service.contract.quotas import QuotaTable
from service.contract.settings import MOST_RUNS
from service.engine import database
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.engine.task_queue import WakeUpQueue
from service.engine.tracing.spans import OFF, Tracer
from service.http.app import create_app
from service.http.dependencies import AppParts
from service.outbound.client import OutboundClient
from workers.jobs.toolbox import Toolbox
from workers.metrics.java.jvm import Jvm
from workers.runtime import in_process

LOG = "serve.log"


class Turns:
    """A queue for the threads of an application: one thread performs tasks, the others wait.

    While `held` is true, submitted tasks stay in the outbox.
    """

    def __init__(self, performing: WakeUpQueue) -> None:
        self._performing = performing
        self._turn = RLock()
        self.held = False

    def flush(self, records: Records) -> int:
        if self.held:
            return 0
        with self._turn:  # tasks flush too while they are performed, which the queue allows
            return self._performing.flush(records)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._performing, name)


class ServiceHere(Served):
    def __init__(
        self, home: Path, running: AppParts, turns: Turns, port: int, toolbox: Toolbox
    ) -> None:
        self.home = home
        self.log = home / LOG
        self.records = running.records
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._running = running
        self._turns = turns
        self._toolbox = toolbox

    @property
    def parts(self) -> ServiceParts:
        return self._running

    def forget_models(self) -> None:
        """As if the worker had been started again."""
        self._toolbox.forget_model()

    def until_awaited(self, identity: str) -> None:
        """Wait until a request waits for this run to change."""
        until(lambda: identity in self._running.watcher._waiting, 10, f"who waits for {identity}")

    def hold(self) -> None:
        """From now on, no submitted task is performed."""
        self._turns.held = True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Perform no tasks inside, and afterwards those that were not canceled."""
        self.hold()
        try:
            yield
        finally:
            self._turns.held = False
            self._turns.flush(self.records)


@contextlib.contextmanager
def service_here(
    home: Path,
    jvm: Jvm | None = None,
    url: str | None = None,
    blob_url: str | None = None,
    public_url: str | None = None,
    assets: Path | None = None,
    most_runs: int = MOST_RUNS,
    speed: float = 1.0,
    outgoing: OutboundClient | None = None,
    tracer: Tracer = OFF,
    allowed: QuotaTable | None = None,
    jobs: TokenExchange | None = None,
    pages: str | None = None,
) -> Iterator[ServiceHere]:
    """A service on SQLite and files in `home`, or on the URLs. The caller closes `jvm`."""
    home.mkdir(parents=True, exist_ok=True)
    engine = database.open_database(url) if url else stored_records.open_empty_record(home)
    database.migrate_database(engine)  # the record may be an earlier version's
    records, blobs = Records(engine), open_blobs(blob_url, home, public_url)
    toolbox = Toolbox("cpu", AssetFolders(home, assets), _jvm=jvm)
    turns = Turns(in_process.open_queue(records, blobs, home / "attempts", toolbox, tracer))
    parts = ServiceParts(records, blobs, turns, toolbox.places, speed=speed, public_url=pages)
    given = {"outgoing": outgoing, "allowed": allowed, "jobs": jobs}
    given = {name: part for name, part in given.items() if part is not None}
    running = AppParts.on(parts, most_runs=most_runs, **given)
    try:
        with _logged(home / LOG), _served(running, tracer) as port:
            yield ServiceHere(home, running, turns, port, toolbox)
    finally:
        if jvm is not None:
            toolbox._jvm = None
        toolbox.close()
        engine.dispose()


_open_logs: list[TextIO] = []  # of the services that are there; the last one's is written


@contextlib.contextmanager
def _logged(path: Path) -> Iterator[None]:
    """Write logs to a file, not to stdout or stderr, where tests read commands' output. Services of
    one process may end in any order: a file that is closed is written no more.
    """
    with path.open("a", encoding="utf-8") as file:
        _open_logs.append(file)
        _write_to_the_last()
        try:
            yield
        finally:
            _open_logs.remove(file)
            _write_to_the_last()


def _write_to_the_last() -> None:
    structlog.reset_defaults()
    if _open_logs:
        processors = [
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ]
        structlog.configure(processors, logger_factory=structlog.WriteLoggerFactory(_open_logs[-1]))


@contextlib.contextmanager
def _served(running: AppParts, tracer: Tracer) -> Iterator[int]:
    """Serve the application; gives its port."""
    app = create_app(running, tracer=tracer)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, proxy_headers=False, timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive(), 10, "an application")
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
