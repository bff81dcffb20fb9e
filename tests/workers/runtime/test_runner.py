"""A runner of tasks: spans of its attempts, and a record that cannot be written for a while."""

import json
import os
import socket
import threading
import time

import pytest
import sqlalchemy as sa

from helpers import stored_records
from helpers.executors import FakeExecutor
from helpers.span_recorder import keeping
from helpers.waits import until
from service.contract.plan.tasks import Blob, Task
from service.engine import database, intake, leases
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.engine.tables import attempts, task_rows
from service.engine.task_queue import InProcessQueue
from service.engine.tracing import contexts
from workers.processes import ChildGone
from workers.runtime import runner as runners
from workers.runtime.attempt_files import AttemptFiles
from workers.runtime.memory_share import MemoryShare
from workers.runtime.runner import TaskRunner
from workers.runtime.warm_child import ChildAnswer

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "a man who holds a sign"
HERE = f"@{socket.gethostname()}:{os.getpid()}-"
ERROR = {"error": {"code": "internal", "detail": SECRET}}


@pytest.fixture
def records(tmp_path, monkeypatch):
    """A record on SQLite, whose writers wait for a short time."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.3)
    stored_records.open_empty_record(tmp_path).dispose()
    engine = database.open_database(f"sqlite:///{tmp_path / 'record.sqlite'}")
    yield Records(engine)
    engine.dispose()


@pytest.fixture
def prepare(records, tmp_path):
    """Adds a task; returns a runner with this child, and the task."""

    def prepared(child, price=0.0, **options):
        blobs = open_blobs(None, tmp_path)
        (tmp_path / "uploaded").write_bytes(b"x")
        blob = Blob(blobs.put_file(tmp_path / "uploaded"))
        task = Task("look", {"captions": blob}, {"text": SECRET}, price=price)
        with records.transaction() as connection:
            intake.add_tasks(records, connection, [task], 1e12)
        files = AttemptFiles(blobs, tmp_path / "attempts")
        queue = InProcessQueue(lambda _: None)
        return TaskRunner(records, queue, files, "w", lambda: child, **options), task

    return prepared


@pytest.fixture
def perform(records, prepare):
    """Performs a task with a child that answers so; gives the span of its attempt."""
    tracer, ended = keeping()

    def performed(receive, parent=PARENT):
        child = FakeExecutor(lambda _, __: receive(), last_output=SECRET)
        with contexts.use_traceparent(parent):
            runner, task = prepare(child, tracer=tracer)
        with records.transaction() as connection:
            connection.execute(task_rows.update().values(ready_at=time.time() - 7))
        assert runner.run_first("metrics")
        (span,) = ended()
        return span, task

    return performed


def _check_no_secret(span):
    assert SECRET not in span.to_json()
    assert span.events == ()  # exceptions have texts


def test_an_attempt_is_a_child_of_the_request_that_asked_and_says_how_long_it_waited(perform):
    span, task = perform(lambda: ChildAnswer(ERROR))
    parent = contexts.parse_traceparent(PARENT)
    assert (span.parent.trace_id, span.parent.span_id) == (parent.trace, parent.span)
    assert span.context.trace_id == parent.trace
    assert span.name == "attempt look"
    assert span.status.status_code.name == "ERROR"
    waited = span.attributes["prescore.queue.wait_seconds"]
    assert 7 <= waited < 60
    assert {**span.attributes, "prescore.queue.wait_seconds": 7} == {
        "prescore.task.kind": "look",
        "prescore.task.key": task.key,
        "prescore.task.attempt": 1,
        "prescore.queue": "metrics",
        "prescore.queue.wait_seconds": 7,
        "error.type": "internal",
    }
    _check_no_secret(span)


def _die():
    raise ChildGone


@pytest.mark.parametrize(
    ("receive", "status", "told"),
    [
        (_die, "ERROR", {"error.type": "worker_lost"}),
        (
            lambda: ChildAnswer({"error": {"code": "unavailable", "detail": SECRET}}),
            "UNSET",
            {"prescore.outcome": "unavailable"},
        ),
    ],
)
def test_a_child_that_dies_is_an_error_too_and_a_metric_that_is_unavailable_is_none(
    perform, receive, status, told
):
    """Here of a task that nobody traced: it begins a trace of its own."""
    span, _ = perform(receive, parent=None)
    assert span.parent is None
    assert span.status.status_code.name == status
    assert span.attributes.items() >= told.items()
    _check_no_secret(span)


def test_an_attempt_that_is_canceled_is_given_up(perform, records, monkeypatch):
    monkeypatch.setattr(runners, "BEAT_SECONDS", -1.0)

    def canceled():
        with records.transaction() as connection:
            connection.execute(task_rows.update().values(status="canceled"))

    span, _ = perform(canceled)
    assert span.attributes["prescore.outcome"] == "given up"
    assert span.status.status_code.name == "UNSET"


@pytest.mark.parametrize(("price", "is_called"), [(0.5, False), (9.0, True)])
def test_what_is_done_meanwhile_is_done_beside_a_long_task_alone(
    records, prepare, monkeypatch, price, is_called
):
    monkeypatch.setattr(runners, "BEAT_SECONDS", -1.0)
    calls, looks = [], iter(range(100))

    def cancel(*_):
        if next(looks) == 0:
            return
        with records.transaction() as connection:
            connection.execute(task_rows.update().values(status="canceled"))

    runner, _ = prepare(FakeExecutor(cancel), price, meanwhile=lambda: calls.append(1))
    assert runner.run_first("metrics")
    assert bool(calls) is is_called


@pytest.fixture
def begin(prepare, monkeypatch):
    """Begins a task in a thread; returns its child, the thread, what it raises, and the event at
    which the child answers.
    """
    monkeypatch.setattr(runners, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(runners, "POLL_SECONDS", 0.02)
    may_answer, raised = threading.Event(), []

    def receive(child, seconds):
        if not may_answer.wait(seconds):
            return None
        child.result.write_text("{}")
        return ChildAnswer({"summary": {}})

    child = FakeExecutor(receive)
    runner, _ = prepare(child)

    def run():
        try:
            runner.run_first("metrics")
        except sa.exc.SQLAlchemyError as error:
            raised.append(error)

    thread = threading.Thread(target=run)

    def begun():
        thread.start()
        until(lambda: child.result is not None, 60, "a task that is begun")
        return child, thread, raised, may_answer

    yield begun
    may_answer.set()
    thread.join(60)


def _read(records, column):
    with records.reading() as connection:
        return connection.execute(sa.select(column)).scalar_one()


@pytest.fixture
def warnings(monkeypatch):
    """Warnings of a record that cannot be written."""
    lines = []

    def warn(event, **_):
        if "cannot be written" in event:
            lines.append(event)

    monkeypatch.setattr(runners.log, "warning", warn, raising=False)
    return lines


def test_a_beat_that_cannot_be_written_is_tried_again_and_ends_nothing(records, begin, warnings):
    child, thread, raised, may_answer = begin()
    with records.transaction():
        before = _read(records, task_rows.c.lease_until)
        until(lambda: len(warnings) >= 2, 60, "two warnings")
        assert not child.was_ended
    until(lambda: _read(records, task_rows.c.lease_until) > before, 60, "a later lease")
    may_answer.set()
    thread.join(60)
    assert (raised, child.was_ended) == ([], False)
    assert _read(records, task_rows.c.status) == "done"
    assert _read(records, attempts.c.outcome) == "done"


def test_a_result_that_cannot_be_written_is_written_later(records, begin, warnings):
    child, thread, raised, may_answer = begin()
    with records.transaction():
        may_answer.set()
        until(lambda: len(warnings) >= 2, 60, "two warnings")
        assert thread.is_alive()
    thread.join(60)
    assert (raised, child.was_ended) == ([], False)
    assert _read(records, task_rows.c.status) == "done"


@pytest.mark.usefixtures("warnings")
def test_after_the_end_of_its_lease_the_attempt_ends(records, begin, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.0)
    child, thread, raised, _ = begin()
    with records.transaction():
        thread.join(60)
        assert not thread.is_alive()
    assert child.was_ended
    assert [type(error) for error in raised] == [sa.exc.OperationalError]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"summary": None},
        {"summary": {"scores": "many"}},
        {"error": "words"},
        {"error": {"code": 7, "detail": "x"}},
        {"error": {"code": "internal"}},
    ],
)
def test_an_answer_that_is_none_counts_as_a_death(records, prepare, content):
    child = FakeExecutor(lambda *_: ChildAnswer(content))
    runner, _ = prepare(child)
    assert runner.run_first("metrics")
    assert child.was_ended
    assert _read(records, task_rows.c.deaths) == 1
    assert "expected a summary of the task look" in _read(records, task_rows.c.error)


def test_an_error_of_a_child_is_plain_and_short(records, prepare):
    told = {"code": "metric_failed", "detail": "a\x1b[2J" + "x" * 10_000}
    runner, _ = prepare(FakeExecutor(lambda *_: ChildAnswer({"error": told})))
    assert runner.run_first("metrics")
    kept = json.loads(_read(records, task_rows.c.error))
    assert kept["detail"].startswith("a\\x1b[2Jxxx")
    assert len(kept["detail"]) < 4100


def test_a_result_that_is_no_file_is_no_result(records, prepare, tmp_path):
    def link(child, _):
        child.result.symlink_to(tmp_path / "record.sqlite")
        return ChildAnswer({"summary": {}})

    runner, _ = prepare(FakeExecutor(link))
    assert runner.run_first("metrics")
    assert _read(records, task_rows.c.deaths) == 1
    assert "expected a plain file" in _read(records, task_rows.c.error)


@pytest.mark.parametrize(("others", "status"), [(500, "ready"), (700, "done")])
def test_of_a_machine_whose_memory_is_short_the_largest_task_is_tried_again(
    records, prepare, tmp_path, others, status
):
    memory, another = (MemoryShare(900, 1000, tmp_path, f"{word}{HERE}") for word in "ab")
    another.find_excess(others)
    looks = iter(range(1000))

    def receive(child, _):
        time.sleep(runners.BEAT_SECONDS / 20)
        if next(looks) < 30:
            return None
        child.result.write_text("found")
        return ChildAnswer({"summary": {}})

    child = FakeExecutor(receive, held=600)
    runner, _ = prepare(child, memory=memory)
    runner.run_first("metrics")
    with records.reading() as connection:
        row = connection.execute(sa.select(task_rows)).one()
    assert (row.status, row.failures) == (status, int(status == "ready"))
    runner.close()
