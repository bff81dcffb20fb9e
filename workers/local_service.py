"""Local service: a service in this process, for programs and commands without a remote one.

The application listens at a socket in a private folder, and nowhere else. One thread performs the
tasks by the rules of a worker, another repairs as the janitor does. Database and objects stay in
the folder `here` of PRESCORE_HOME: the next program computes nothing twice.
"""

import contextlib
import fcntl
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
import uvicorn

from service.contract import settings
from service.contract.errors import PrescoreError
from service.engine import database, logs, task_expiry
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.engine.tables import runs
from service.http.app import create_app
from service.http.dependencies import AppParts
from service.http.middleware.connections import BoundedConnection
from service.operate import janitor
from service.retention.retention_policy import RetentionPolicy
from service.runs import evaluation_listener
from service.stored import judge_process, judges
from workers.jobs.toolbox import Toolbox
from workers.runtime.in_process import open_background_queue

FOLDER = "here"
_LARGEST_LOG = 1_000_000  # bytes; a larger one begins anew
_START_SECONDS = 30.0


@contextlib.contextmanager
def run_local_service(home: Path | None = None, folder: Path | None = None) -> Iterator[Path]:
    """Run a service until the end of the block; gives the socket at which it listens.

    `home`: as for `prescore serve`; the service's own data are in `folder`, by default in it.
    """
    chosen = settings.load_settings().at(home)
    folder = folder or chosen.home / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.ExitStack() as stack:
        stack.enter_context(logs.write_logs_to(_log(folder), chosen.log_level))
        engine = database.open_database(f"sqlite:///{folder / 'record.sqlite'}")
        stack.callback(engine.dispose)
        records, blobs = Records(engine), open_blobs(None, folder)
        evaluation_listener.listen_to_engine()
        stack.enter_context(_shared(folder, records))
        stack.enter_context(judges.get_judges().staying_here(judge_process.answer_question))
        toolbox = Toolbox.of(chosen)
        stack.callback(toolbox.close)
        queue = stack.enter_context(open_background_queue(records, blobs, folder, toolbox))
        parts = ServiceParts(records, blobs, queue, toolbox.places, speed=chosen.inference_speed)
        stack.enter_context(_repaired(parts))
        yield stack.enter_context(_served(AppParts.on(parts)))


def _log(folder: Path) -> Path:
    path = folder / "log"
    if path.exists() and path.stat().st_size > _LARGEST_LOG:
        path.unlink()
    return path


@contextlib.contextmanager
def _shared(folder: Path, records: Records) -> Iterator[None]:
    """Share the folder with other programs. The first one brings the record to this version, and
    cancels the runs that a program left which was killed: nobody waits for them.
    """
    with (folder / "lock").open("a") as lock:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            database.migrate_database(records.engine)
            _cancel_left_runs(records)
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def _cancel_left_runs(records: Records) -> None:
    left = sa.select(runs.c.id).where(runs.c.finished_at.is_(None))
    with records.reading() as connection:
        identities = connection.execute(left).scalars().all()
    for identity in identities:
        with records.transaction() as connection:
            task_expiry.cancel_run(connection, identity)


@contextlib.contextmanager
def _repaired(parts: ServiceParts) -> Iterator[None]:
    """Repair what killed programs left, and end what is late."""
    ended = threading.Event()
    arguments = parts, ended.wait, RetentionPolicy()
    thread = threading.Thread(
        target=janitor.run_janitor, args=arguments, name="janitor", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def _served(running: AppParts) -> Iterator[Path]:
    config = uvicorn.Config(
        create_app(running),
        http=BoundedConnection,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with (
        tempfile.TemporaryDirectory(prefix="prescore-") as private,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        path = Path(private) / "http"
        listener.bind(str(path))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            _wait_until_started(server, thread)
            yield path
        finally:
            server.should_exit = True
            thread.join()


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    until = time.monotonic() + _START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > until:
            raise PrescoreError("the service in this process did not start: see its log")
        time.sleep(0.005)
