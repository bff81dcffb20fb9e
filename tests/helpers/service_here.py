"""A whole service in this process, for trials of rules and routes.

The application is served as `prescore api` serves it, at a socket of its own, so that the client's
library and commands can be pointed at it; record and blobs are real; what is submitted is computed
before the answer comes, by the worker's own rules. There is no Redis, no janitor, no child to kill.
"""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import RLock, Thread

import structlog
import uvicorn

from fleet import Served, until
from service.contract.plan.assets import Places
from service.http.app import create_app
from service.http.dependencies import Running
from service.works import database
from service.works.blobs import open_blobs
from service.works.parts import Parts
from service.works.queueing import Queue
from service.works.records import Records
from workers.jobs.toolbox import Toolbox
from workers.metrics.java.jvm import Jvm
from workers.runtime import in_process

LOG = "serve.log"


class Turns:
    """A queue for the threads of an application: one performs at a time, the others wait for it.

    While it is held, what is submitted stays in the outbox.
    """

    def __init__(self, performing: Queue) -> None:
        self._performing = performing
        self._turn = RLock()
        self.held = False

    def flush(self, records: Records) -> int:
        if self.held:
            return 0
        with self._turn:  # a work that is being performed flushes too: the queue sees to that
            return self._performing.flush(records)

    def wake(self, key: str, queue: str, *, first: bool = False) -> None:
        with self._turn:
            self._performing.wake(key, queue, first=first)

    def missing(self, records: Records, before: float) -> list[tuple[str, str]]:
        return self._performing.missing(records, before)

    def waiting(self) -> dict[str, int]:
        return self._performing.waiting()

    def foreign(self) -> int:
        return self._performing.foreign()

    def ping(self) -> None:
        self._performing.ping()


class ServiceHere(Served):
    def __init__(self, home: Path, running: Running, turns: Turns, port: int) -> None:
        self.home = home
        self.log = home / LOG
        self.records = running.records
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._running = running
        self._turns = turns

    def until_awaited(self, identity: str) -> None:
        """Somebody waits for this run to change."""
        until(lambda: identity in self._running.watcher._waiting, 10, f"who waits for {identity}")

    def hold(self) -> None:
        """Nothing that is submitted from now on is performed."""
        self._turns.held = True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nothing is performed meanwhile; what was submitted and is not canceled, afterwards."""
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
    assets: Path | None = None,
) -> Iterator[ServiceHere]:
    """On SQLite and files at home, or on what the URLs name. `jvm` is its caller's to close."""
    home.mkdir(parents=True, exist_ok=True)
    engine = database.connect(url or f"sqlite:///{home / 'record.sqlite'}")
    database.migrate(engine)
    records, blobs = Records(engine), open_blobs(blob_url, home)
    toolbox = Toolbox("cpu", Places(home, assets), _jvm=jvm)
    turns = Turns(in_process.queue(records, blobs, home / "attempts", toolbox))
    running = Running.on(Parts(records, blobs, turns, toolbox.places))
    try:
        with _logged(home / LOG), _served(running) as port:
            yield ServiceHere(home, running, turns, port)
    finally:
        if jvm is not None:
            toolbox._jvm = None
        toolbox.close()
        engine.dispose()


@contextlib.contextmanager
def _logged(path: Path) -> Iterator[None]:
    """A line for each event. Not to the streams of this process: what commands print is read."""
    processors = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(default=str),
    ]
    with path.open("a", encoding="utf-8") as file:
        structlog.configure(processors, logger_factory=structlog.WriteLoggerFactory(file))
        try:
            yield
        finally:
            structlog.reset_defaults()


@contextlib.contextmanager
def _served(running: Running) -> Iterator[int]:
    """The port of its application."""
    app = create_app(running)
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2)
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
