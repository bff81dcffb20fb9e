"""Tasks as runs show them: attempts that are left, the time of the next one, and seconds left."""

from datetime import UTC, datetime

import pytest

from service.engine import leases
from service.runs.run_store import build_task

NOW = 1000.0
ROW = {
    **dict.fromkeys(("finished_at", "started_at", "error", "ready_at"), None),
    **dict.fromkeys(("done", "total", "attempt", "failures"), 0),
    "name": "columns",
    "kind": "columns",
    "status": "ready",
    "parts": "[]",
    "cached": False,
}
ERROR = '{"code": "worker_lost", "detail": "its process died"}'


def _task(**changed):
    return build_task({**ROW, **changed}, NOW)


@pytest.mark.parametrize(
    ("done", "total", "started_at", "left"),
    [
        (0, 10, 990.0, None),
        (1, 10, 990.0, 90.0),  # ten seconds for one of ten
        (5, 10, 990.0, 10.0),
        (10, 10, 990.0, 0.0),
        (3, 4, 997.0, 1.0),
        (3, 4, 1001.0, 0.0),  # the clock of another machine
        (0, 0, 990.0, None),
    ],
)
def test_seconds_left_follow_from_the_pace_so_far(done, total, started_at, left):
    running = _task(status="running", done=done, total=total, started_at=started_at, attempt=1)
    assert running.seconds_left == left


def test_a_task_tells_when_its_attempt_began():
    began = datetime.fromtimestamp(990.0, UTC)
    assert _task(status="running", started_at=990.0).started_at == began
    assert _task(status="waiting").started_at is None


@pytest.mark.parametrize(
    "status", ["waiting", "ready", "done", "failed", "canceled", "unavailable"]
)
def test_a_task_that_does_not_run_has_no_seconds_left(status):
    assert _task(status=status, done=1, total=2, started_at=990.0).seconds_left is None


@pytest.mark.parametrize(
    ("status", "attempt", "failures", "allowed"),
    [
        ("waiting", 0, 0, 3),
        ("ready", 0, 0, 3),
        ("running", 1, 0, 3),
        ("ready", 1, 1, 3),
        ("running", 2, 1, 3),
        ("running", 3, 2, 3),
        ("ready", 2, 0, 5),  # two that were ended from outside
        ("running", 4, 1, 5),
        ("done", 1, 0, None),
        ("failed", 3, 3, None),
        ("canceled", 1, 0, None),
        ("unavailable", 1, 0, None),
    ],
)
def test_attempts_that_are_allowed(status, attempt, failures, allowed):
    assert leases.MAX_FAILURES == 3
    found = _task(status=status, attempt=attempt, failures=failures)
    assert found.attempts_allowed == allowed


def test_a_task_in_shards_tells_no_attempts():
    assert _task(parts='["a", "b"]').attempts_allowed is None


def test_a_task_that_failed_is_tried_again_from_when_it_was_ready():
    found = _task(attempt=1, failures=1, error=ERROR, ready_at=999.5)
    assert found.retry_at.timestamp() == 999.5
    assert _task(ready_at=999.5).retry_at is None
    for status in ("waiting", "running", "done", "failed", "canceled", "unavailable"):
        assert _task(status=status, error=ERROR, ready_at=999.5).retry_at is None
