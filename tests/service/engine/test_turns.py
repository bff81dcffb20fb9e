"""Turns: in which order callers' tasks are leased."""

import time

import pytest
import sqlalchemy as sa

from helpers import statements
from service.contract.plan.tasks import Blob, Task
from service.engine import cancellation, intake, leases, turns
from service.engine.tables import task_rows
from service.engine.tables import turns as kept
from service.engine.task_queue import InProcessQueue


def _task(name, price=1.0, kind="bleu", **inputs):
    return Task(kind, {"captions": Blob(name), **inputs}, {}, price=price)


def _add(records, caller, *tasks):
    with records.transaction() as connection:
        intake.add_tasks(records, connection, tasks, time.time() + 100, caller)


def _add_many(records, caller, count, name=None):
    _add(records, caller, *(_task(f"{name or caller}{number}") for number in range(count)))


def _leased(records, queue="metrics"):
    lease = leases.lease_first_task(records, queue, "w")
    return lease and lease.inputs["captions"]


def _all(records):
    return [*iter(lambda: _leased(records), None)]


def test_who_comes_late_with_little_waits_for_one_task_of_who_has_much(on_either):
    """T63."""
    _add_many(on_either, "a", 5)
    assert _leased(on_either) == "a0"
    _add(on_either, "b", _task("b0"), _task("b1"))
    assert _all(on_either) == ["a1", "b0", "a2", "b1", "a3", "a4"]


def test_the_keys_of_a_team_share_what_one_caller_has(on_either):
    """Two keys of red have together what blue's one has, and each of them half of it."""
    for key in ("red/1", "red/2"):
        _add(on_either, key, *(_task(f"{key} {number}") for number in range(4)))
    _add(on_either, "blue/1", *(_task(f"blue {number}") for number in range(4)))
    first = _all(on_either)[:7]
    assert sum(name.startswith("blue") for name in first) >= 3
    assert {name.partition(" ")[0] for name in first} == {"red/1", "red/2", "blue"}


def test_a_callers_many_small_submissions_count_as_one_large_one(records):
    for number in range(4):
        _add(records, "a", _task(f"a{number}"))
    _add(records, "b", _task("b0"))
    assert _all(records) == ["a0", "b0", "a1", "a2", "a3"]


def test_cheap_tasks_come_before_dear_ones(records):
    """Of one submission, and of callers: a second of work counts, not how many tasks there are."""
    _add(records, "a", _task("dear", 5.0), _task("cheap", 0.5), _task("other", 0.5))
    _add(records, "b", *(_task(f"b{number}", 1.0) for number in range(3)))
    assert _all(records) == ["cheap", "other", "b0", "b1", "b2", "dear"]


def test_short_tasks_that_pass_long_ones_are_in_turn_and_move_no_clock(on_either):
    """T66: the long ones of who comes later are not behind all of who came first."""
    _add(on_either, "a", _task("short", 0.5), *(_task(f"a{number}", 9.0) for number in range(3)))
    assert _leased(on_either) == "short"
    assert _leased(on_either) == "a0"
    _add(on_either, "a", _task("late", 3.9))
    _add(on_either, "b", _task("first", 0.5))
    passing = [leases.lease_first_task(on_either, "metrics", "w", short=True) for _ in range(3)]
    assert [lease and lease.inputs["captions"] for lease in passing] == ["first", "late", None]
    _add(on_either, "b", _task("b0", 9.0))
    assert _all(on_either) == ["a1", "b0", "a2"]


def test_tasks_are_performed_at_once_in_their_turns_too(records):
    _add(records, "a", _task("dear", 5.0), _task("cheap", 0.5))
    _add(records, "b", _task("first", 0.1))
    performed = []
    InProcessQueue(lambda queue: performed.append(_leased(records, queue))).flush(records)
    assert performed == ["first", "cheap", "dear"]


def test_who_was_idle_has_saved_nothing(records):
    """The clock goes on: what one does not use, one has not before others later."""
    _add_many(records, "a", 4)
    assert [_leased(records) for _ in range(4)] == ["a0", "a1", "a2", "a3"]
    _add_many(records, "b", 3)
    _add(records, "a", _task("a4"), _task("a5"))
    assert _all(records) == ["b0", "a4", "b1", "a5", "b2"]


def test_a_task_that_waited_or_is_tried_again_keeps_its_turn(records):
    need = _task("need")
    after = _task("after", kind="spider", need=need)
    _add(records, "a", need, after)
    _add_many(records, "a", 3)
    lease = leases.lease_first_task(records, "metrics", "w")
    leases.finish_attempt(records, lease, "sha256:r", {})
    lease = leases.lease_first_task(records, "metrics", "w")
    assert lease.inputs["captions"] == "after"
    leases.hand_back_task(records, lease)
    assert _all(records) == ["after", "a0", "a1", "a2"]


def test_a_task_that_two_want_has_the_earlier_turn(records):
    shared = _task("shared")
    _add(records, "a", *(_task(f"a{number}") for number in range(3)), shared)
    _add(records, "b", shared)
    assert _all(records) == ["a0", "shared", "a1", "a2"]


def test_queues_have_turns_of_their_own(records):
    _add_many(records, "a", 3)
    _add(records, "a", _task("parsed", kind="tuples"))
    _add(records, "b", _task("late", kind="tuples"))
    assert [_leased(records, "parsing") for _ in range(3)] == ["parsed", "late", None]


def test_callers_whose_turns_are_over_are_forgotten(on_either):
    for number in range(20):
        _add(on_either, f"caller {number}", _task(f"a{number}"))
    _add(on_either, "red/1", _task("r"))
    for _ in range(21):
        _took(on_either, 1.0)
    _add(on_either, "last", _task("last", 9.0))
    assert _leased(on_either) == "last"
    with on_either.reading() as connection:
        found = connection.execute(sa.select(kept.c.caller)).scalars().all()
    assert sorted(found) == ["", "last"]  # it has not ended


def _took(records, seconds, end=None):
    """Lease the next task, which ends after so many seconds; its name."""
    lease = leases.lease_first_task(records, "metrics", "w")
    with records.transaction() as connection:
        begun = task_rows.update().where(task_rows.c.key == lease.key)
        connection.execute(begun.values(started_at=time.time() - seconds))
    if end is None:
        leases.finish_attempt(records, lease, "sha256:r", {})
    else:
        end(records, lease)
    return lease.inputs["captions"]


def test_who_takes_more_than_the_price_waits_as_if_it_had_been_the_price(on_either):
    """Also for tasks that were submitted before it was known, and for another key of the team."""
    _add_many(on_either, "red/1", 3)
    _add_many(on_either, "red/2", 2, "r")
    assert _took(on_either, 100.0) == "red/10"
    _add(on_either, "blue/1", *(_task(f"b{number}", 20.0) for number in range(3)))
    assert _all(on_either)[:3] == ["b0", "b1", "b2"]


def test_those_behind_the_next_ones_are_charged_before_they_are_leased(on_either, monkeypatch):
    """However many wait, few are moved at once."""
    monkeypatch.setattr(turns, "_NEXT", 2)
    _add_many(on_either, "red/1", 6)
    assert _took(on_either, 100.0) == "red/10"
    moved = sa.select(sa.func.count()).where(task_rows.c.turn > 100)
    with on_either.reading() as connection:
        assert connection.execute(moved).scalar_one() == 2
    _add(on_either, "blue/1", *(_task(f"b{number}", 20.0) for number in range(3)))
    assert _all(on_either)[:3] == ["b0", "b1", "b2"]


def test_a_short_task_is_charged_before_it_is_leased(on_either, monkeypatch):
    monkeypatch.setattr(turns, "_NEXT", 1)
    _add(on_either, "red/1", *(_task(f"long{number}", 9.0) for number in range(3)))
    _add(on_either, "red/1", _task("short", 0.5))
    with on_either.transaction() as connection:
        turns.shift_turns(connection, "metrics", "red/1", 100.0)
    _add(on_either, "blue/1", _task("blue", 1.0))
    leased = [leases.lease_first_task(on_either, "metrics", "w", short=True) for _ in range(2)]
    assert [lease.inputs["captions"] for lease in leased] == ["blue", "short"]


def test_a_caller_that_the_clock_has_passed_is_charged_too(on_either):
    _add(on_either, "a", _task("a0"))
    assert _took(on_either, 50.0) == "a0"
    _add(on_either, "a", _task("a1"))
    _add(on_either, "b", *(_task(f"b{number}", 15.0) for number in range(2)))
    assert _all(on_either) == ["b0", "b1", "a1"]


def test_who_takes_less_than_the_price_comes_sooner_but_not_before_the_clock(on_either):
    _add(on_either, "a", *(_task(f"a{number}", 10.0) for number in range(2)))
    assert _took(on_either, 1.0) == "a0"
    _add(on_either, "b", _task("b0", 5.0), _task("b1", 5.0))
    _add(on_either, "a", _task("a2", 4.0))
    assert _all(on_either) == ["a1", "b0", "a2", "b1"]


def _cancel(records, _lease):
    with records.transaction() as connection:
        cancellation.cancel_tasks(connection, "run")


def _fail(records, lease):
    error = {"code": "x", "detail": "y"}
    leases.fail_attempt(records, lease, error, death=True, retry=True)


def _hand_back(records, lease):
    leases.hand_back_task(records, lease, is_long=True)


def _lose(records, lease):
    leases.lose_attempt(records, lease, {"code": "x", "detail": "y"}, killed=True)


@pytest.mark.parametrize(
    ("end", "is_charged"), [(_cancel, True), (_fail, True), (_hand_back, True), (_lose, False)]
)
def test_an_attempt_that_ends_otherwise_is_charged_unless_it_was_lost(
    on_either, monkeypatch, end, is_charged
):
    every = sa.select(task_rows.c.key)
    monkeypatch.setattr(
        cancellation, "find_run_tasks", lambda at, _: set(at.execute(every).scalars())
    )
    _add(on_either, "a", _task("a0"))
    assert _took(on_either, 100.0, end) == "a0"
    _add(on_either, "a", _task("late", 1.0))
    _add(on_either, "b", _task("b0", 20.0))
    found = _all(on_either)
    assert (found.index("b0") < found.index("late")) is is_charged


def test_whose_turn_it_is_is_found_by_index(records):
    """Of SQLite: PostgreSQL's choice depends on how many rows there are."""
    with statements.watched(records.engine) as found, records.reading() as connection:
        turns.find_first_task(connection, "metrics")
    plan = " ".join(found[-1].plan)
    assert "ix_tasks_turn (queue=? AND status=?)" in plan
    assert "SCAN" not in plan
