"""What the span of an attempt says, and what not."""

import time

import pytest

import empty_record
from service.contract.plan.tasks import Blob, Task
from service.engine import intake
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.engine.tables import task_rows
from service.engine.task_queue import InProcessQueue
from service.engine.tracing import contexts
from spans_kept import keeping
from workers.processes import ChildGone
from workers.runtime.attempt_files import AttemptFiles
from workers.runtime.runner import TaskRunner
from workers.runtime.warm_child import ChildAnswer, ChildExit, ExitCause

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "a man who holds a sign"
ERROR = {"error": {"code": "internal", "detail": SECRET}}


class FailingExecutor:
    """A fake of the warm child: what kills a real one is not to be had at will."""

    peak_bytes = 0
    last_output = SECRET

    def __init__(self, receive):
        self.receive = receive

    def send(self, request):
        pass

    def memory(self):
        return 0

    def end(self):
        return ChildExit(f"it died at {SECRET}", ExitCause.OUTSIDE)

    def close(self):
        pass


@pytest.fixture
def records(tmp_path):
    engine = empty_record.at(tmp_path)
    yield Records(engine)
    engine.dispose()


@pytest.fixture
def perform(records, tmp_path):
    """Performs a task with a child that answers so; gives the spans of its attempts."""
    tracer, ended = keeping()
    blobs = open_blobs(None, tmp_path)
    uploaded = tmp_path / "uploaded"
    uploaded.write_bytes(b"x")
    task = Task("look", {"captions": Blob(blobs.put_file(uploaded))}, {"text": SECRET})

    def performed(receive, parent=PARENT):
        with records.transaction() as connection, contexts.use_traceparent(parent):
            intake.add_tasks(records, connection, [task], 1e12)
        with records.transaction() as connection:
            connection.execute(task_rows.update().values(ready_at=time.time() - 7))
        workplace = AttemptFiles(blobs, tmp_path / "attempts")
        queue = InProcessQueue(lambda _: None)
        child = FailingExecutor(receive)
        runner = TaskRunner(records, queue, workplace, "w", lambda: child, tracer=tracer)
        assert runner.run_first("metrics")
        return ended(), task

    return performed


def _no_secret(span):
    assert SECRET not in span.to_json()
    assert span.events == ()  # exceptions have texts


def test_an_attempt_is_a_child_of_the_request_that_asked_and_says_how_long_it_waited(perform):
    ((span,), task) = perform(lambda seconds: ChildAnswer(ERROR))
    parent = contexts.parse_traceparent(PARENT)
    assert (span.parent.trace_id, span.parent.span_id) == (parent.trace, parent.span)
    assert span.context.trace_id == parent.trace
    assert span.name == "attempt look"
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


def test_an_error_is_told_by_its_code_and_not_by_its_text(perform):
    ((span,), _) = perform(lambda seconds: ChildAnswer(ERROR))
    assert span.status.status_code.name == "ERROR"
    assert span.attributes["error.type"] == "internal"
    _no_secret(span)


def test_a_child_that_dies_is_an_error_too(perform):
    def die(seconds):
        raise ChildGone

    ((span,), _) = perform(die)
    assert span.status.status_code.name == "ERROR"
    assert span.attributes["error.type"] == "worker_lost"
    _no_secret(span)


def test_what_nobody_foresaw_is_an_error_by_its_type(perform):
    tracer, ended = keeping()

    def odd(seconds):
        raise ZeroDivisionError(SECRET)

    with pytest.raises(ZeroDivisionError), tracer.attempt("attempt x", None, {}):
        odd(1)
    (span,) = ended()
    assert span.attributes["error.type"] == "ZeroDivisionError"
    _no_secret(span)


def test_a_metric_that_is_unavailable_is_no_error(perform):
    answer = {"error": {"code": "unavailable", "detail": SECRET}}
    ((span,), _) = perform(lambda seconds: ChildAnswer(answer))
    assert span.status.status_code.name == "UNSET"
    assert span.attributes["prescore.outcome"] == "unavailable"
    _no_secret(span)


def test_an_attempt_that_is_canceled_is_given_up(perform, records, monkeypatch):
    monkeypatch.setattr("workers.runtime.runner.BEAT_SECONDS", -1.0)

    def canceled(seconds):
        with records.transaction() as connection:
            connection.execute(task_rows.update().values(status="canceled"))

    ((span,), _) = perform(canceled)
    assert span.attributes["prescore.outcome"] == "given up"
    assert span.status.status_code.name == "UNSET"


def test_a_task_that_nobody_traced_begins_a_trace_of_its_own(perform):
    ((span,), _) = perform(lambda seconds: ChildAnswer(ERROR), parent=None)
    assert span.parent is None
