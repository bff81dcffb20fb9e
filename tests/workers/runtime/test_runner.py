"""A runner whose record cannot be written for a while."""

import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

import empty_record
from service.contract.plan.tasks import Blob, Task
from service.engine import database, intake, leases
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.engine.tables import attempts, task_rows
from service.engine.task_queue import InProcessQueue
from workers.runtime import runner as runners
from workers.runtime.attempt_files import AttemptFiles
from workers.runtime.runner import TaskRunner
from workers.runtime.warm_child import ChildAnswer, ChildExit, ExitCause

ANSWER = ChildAnswer({"summary": {"scores": {}}})


class WaitingExecutor:
    """A fake of the warm child that computes until it is told to answer."""

    peak_bytes = 0
    last_output = ""

    def __init__(self):
        self.may_answer = threading.Event()
        self.was_ended = False
        self.result = None

    def send(self, request):
        self.result = request["result"]

    def receive(self, seconds):
        if not self.may_answer.wait(seconds):
            return None
        Path(self.result).write_text("{}")
        return ANSWER

    def memory(self):
        return 0

    def end(self):
        self.was_ended = True
        return ChildExit("it was ended", ExitCause.OUTSIDE)

    def close(self):
        pass


@pytest.fixture
def record(tmp_path, monkeypatch):
    """A record on SQLite, whose writers wait for a short time."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.3)
    empty_record.at(tmp_path).dispose()
    engine = database.open_database(f"sqlite:///{tmp_path / 'record.sqlite'}")
    yield Records(engine)
    engine.dispose()


@pytest.fixture
def begun(record, tmp_path, monkeypatch):
    """A runner in a thread, which has begun a task; its child, and what it raises."""
    monkeypatch.setattr(runners, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(runners, "POLL_SECONDS", 0.02)
    blobs = open_blobs(None, tmp_path)
    (tmp_path / "uploaded").write_bytes(b"x")
    task = Task("look", {"captions": Blob(blobs.put_file(tmp_path / "uploaded"))}, {})
    with record.transaction() as connection:
        intake.add_tasks(record, connection, [task], 1e12)
    child = WaitingExecutor()
    workplace = AttemptFiles(blobs, tmp_path / "attempts")
    runner = TaskRunner(record, InProcessQueue(lambda _: None), workplace, "w", lambda: child)
    raised = []

    def run():
        try:
            runner.run_first("metrics")
        except sa.exc.SQLAlchemyError as error:
            raised.append(error)

    thread = threading.Thread(target=run)

    def begin():
        thread.start()
        _until(lambda: child.result is not None)
        return child, thread, raised

    yield begin
    child.may_answer.set()
    thread.join(60)


def _until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def _status(record):
    with record.reading() as connection:
        return connection.execute(sa.select(task_rows.c.status)).scalar_one()


def _lease_until(record):
    with record.reading() as connection:
        return connection.execute(sa.select(task_rows.c.lease_until)).scalar_one()


def _warnings(log):
    return [line for line in log if "cannot be written" in line]


@pytest.fixture
def log(monkeypatch):
    lines = []
    monkeypatch.setattr(
        runners.log, "warning", lambda event, **told: lines.append(event), raising=False
    )
    return lines


def test_a_beat_that_cannot_be_written_is_tried_again_and_ends_nothing(record, begun, log):
    child, thread, raised = begun()
    with record.transaction():
        before = _lease_until(record)
        _until(lambda: len(_warnings(log)) >= 2)
        assert not child.was_ended
    _until(lambda: _lease_until(record) > before)
    child.may_answer.set()
    thread.join(60)
    assert (raised, child.was_ended, _status(record)) == ([], False, "done")
    with record.reading() as connection:
        rows = connection.execute(sa.select(attempts.c.outcome)).scalars().all()
    assert rows == ["done"]


def test_a_result_that_cannot_be_written_is_written_later(record, begun, log):
    child, thread, raised = begun()
    with record.transaction():
        child.may_answer.set()
        _until(lambda: len(_warnings(log)) >= 2)
        assert thread.is_alive()
    thread.join(60)
    assert (raised, child.was_ended, _status(record)) == ([], False, "done")


def test_after_the_end_of_its_lease_the_attempt_ends(record, begun, log, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.0)
    child, thread, raised = begun()
    with record.transaction():
        thread.join(60)
        assert not thread.is_alive()
    assert child.was_ended
    assert [type(error) for error in raised] == [sa.exc.OperationalError]
