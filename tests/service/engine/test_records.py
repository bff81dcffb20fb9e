"""The tasks engine, on SQLite and PostgreSQL alike (trial 36)."""

import contextlib
import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from service.contract.plan.tasks import Blob, Task
from service.engine import history, intake, leases, presence, task_expiry
from service.engine.records import Records
from service.engine.tables import attempts, outbox, run_tasks, runs, task_rows, untold
from taking import take

SOON = 1e12
ERROR = {"code": "worker_lost", "detail": "killed"}


@pytest.fixture
def records(engine):
    return Records(engine)


def _columns(checkpoint="a", parts=()):
    inputs = {"checkpoint": Blob(f"sha256:{checkpoint}"), "dataset": Blob("sha256:d")}
    return Task("columns", inputs, {"split": "test"}, tuple(parts))


def _pregen(columns=None):
    return Task("pregen", {"columns": columns or _columns()}, {})


def _events(records, identity):
    with records.reading() as connection:
        return history.read_events_after(connection, identity, 0)


def _plan(records, *tasks, evaluation="ev_1", deadline=SOON):
    """Adds tasks and an evaluation that names them; key -> was it done."""
    everything = {step.key: step for task in tasks for step in task.everything()}
    with records.transaction() as connection:
        cached = intake.add_tasks(records, connection, list(everything.values()), deadline)
        connection.execute(
            runs.insert().values(
                id=evaluation,
                request='{"checkpoint": null, "postgen": []}',
                kind="evaluation",
                dataset_name="d",
                dataset_version=1,
                dataset_digest="sha256:d",
                split="test",
                status="queued",
                version=1,
                warnings="[]",
                deadline=deadline,
                created_at=time.time(),
            )
        )
        for position, task in enumerate(tasks):
            connection.execute(
                run_tasks.insert().values(
                    run_id=evaluation,
                    position=position,
                    name=task.kind,
                    task_key=task.key,
                    cached=cached[task.key],
                )
            )
        history.settle_run(connection, evaluation)
    return cached


def _column(records, column, table=task_rows, **where):
    query = sa.select(table.c[column])
    for name, value in where.items():
        query = query.where(table.c[name] == value)
    with records.reading() as connection:
        return connection.execute(query).scalars().all()


def _status(records, task):
    return _column(records, "status", key=task.key)[0]


def _evaluation(records, identity="ev_1"):
    return _column(records, "status", runs, id=identity)[0]


def test_a_task_is_ready_when_all_that_it_needs_is_done(records):
    task = _pregen()
    _plan(records, task)
    assert (_status(records, _columns()), _status(records, task)) == ("ready", "waiting")
    lease = take(records, _columns().key, "w1")
    assert lease.inputs == {"checkpoint": "sha256:a", "dataset": "sha256:d"}
    assert leases.finish_attempt(records, lease, "sha256:result", {})
    assert _status(records, task) == "ready"
    assert take(records, task.key, "w1").inputs == {"columns": "sha256:result"}


def test_shards_come_back_in_their_order(records):
    parts = [Task("columns", _columns().inputs, {"images": [at, at + 1]}) for at in range(3)]
    whole = _columns(parts=parts)
    _plan(records, whole)
    for place in (2, 0, 1):
        leases.finish_attempt(records, take(records, parts[place].key, "w"), f"sha256:{place}", {})
    assert take(records, whole.key, "w").parts == ("sha256:0", "sha256:1", "sha256:2")


def test_every_readiness_is_a_wake_up_in_the_outbox(records):
    _plan(records, _pregen())
    assert _column(records, "task_key", outbox) == [_columns().key]
    leases.finish_attempt(records, take(records, _columns().key, "w"), "sha256:r", {})
    assert _column(records, "task_key", outbox) == [_columns().key, _pregen().key]


def test_only_one_worker_gets_a_lease(records):
    _plan(records, _columns())
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda n: take(records, _columns().key, f"w{n}"), range(16)))
    assert len([lease for lease in taken if lease is not None]) == 1


def test_a_late_attempt_is_refused_and_the_current_one_counts(records, monkeypatch):
    """Trial 23's core: the lease ran out, another worker took over, the first one comes back."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", -1.0)
    _plan(records, _columns())
    late = take(records, _columns().key, "slow")
    assert task_expiry.expire_leases(records) == 1
    current = take(records, _columns().key, "quick")
    assert current.attempt == late.attempt + 1
    assert not leases.extend_lease(records, late, 1, 2)
    assert not leases.finish_attempt(records, late, "sha256:late", {})
    assert leases.finish_attempt(records, current, "sha256:right", {})
    assert _column(records, "result", key=_columns().key) == ["sha256:right"]
    assert not leases.finish_attempt(records, late, "sha256:late", {})
    assert _column(records, "result", key=_columns().key) == ["sha256:right"]


def test_attempts_are_kept_with_how_they_ended(records):
    _plan(records, _columns())
    lease = take(records, _columns().key, "w1")
    leases.fail_attempt(
        records, lease, {"code": "worker_lost", "detail": "killed"}, death=True, retry=True
    )
    leases.finish_attempt(records, take(records, _columns().key, "w2"), "sha256:r", {})
    assert _column(records, "outcome", attempts, task_key=_columns().key) == ["worker_lost", "done"]


def test_a_work_that_kills_two_workers_is_quarantined(records):
    """Trial 28's core."""
    _plan(records, _pregen())
    for attempt in range(2):
        lease = take(records, _columns().key, f"w{attempt}")
        leases.fail_attempt(
            records, lease, {"code": "worker_lost", "detail": "died"}, death=True, retry=True
        )
    assert _status(records, _columns()) == "failed"
    assert _status(records, _pregen()) == "failed"
    assert _evaluation(records) == "failed"
    assert take(records, _columns().key, "w3") is None


def test_workers_that_fall_silent_are_no_failures_of_the_work(records, monkeypatch):
    _plan(records, _columns())
    monkeypatch.setattr(leases, "LEASE_SECONDS", -1.0)
    for _ in range(5):
        assert take(records, _columns().key, "w") is not None
        assert task_expiry.expire_leases(records) == 1
    monkeypatch.undo()
    assert leases.finish_attempt(records, take(records, _columns().key, "w"), "sha256:r", {})
    assert _evaluation(records) == "succeeded"


def test_not_even_they_may_go_on_for_ever(records, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_SECONDS", -1.0)
    _plan(records, _columns())
    for _ in range(leases.MAX_LOSSES):
        assert take(records, _columns().key, "w") is not None
        task_expiry.expire_leases(records)
    assert _status(records, _columns()) == "failed"
    assert "worker_lost" in _column(records, "error", key=_columns().key)[0]


def _lose(records, done, total=100):
    lease = take(records, _columns().key, "w")
    leases.extend_lease(records, lease, done, total)
    leases.lose_attempt(records, lease, ERROR, killed=True)


def test_what_is_killed_from_outside_is_tried_again_and_again(records):
    _plan(records, _columns())
    for done in (0, 0, 0, 10, 20, 10, 30, 0):
        _lose(records, done)
    assert _status(records, _columns()) == "ready"
    assert _column(records, "deaths", key=_columns().key) == [0]


def test_what_is_always_lost_at_the_same_place_is_its_own_death(records):
    """Of a child that the system kills it is not always known why."""
    _plan(records, _columns())
    for _ in range(3):
        _lose(records, 40)
    assert _status(records, _columns()) == "failed"


def test_three_errors_of_its_own_are_enough(records):
    """Whatever has happened from outside in between."""
    _plan(records, _columns())
    for _ in range(3):
        assert _status(records, _columns()) == "ready"
        _lose(records, 0)
        leases.hand_back_task(records, take(records, _columns().key, "w"))
        lease = take(records, _columns().key, "w")
        leases.fail_attempt(
            records, lease, {"code": "internal", "detail": "x"}, death=False, retry=True
        )
    assert _status(records, _columns()) == "failed"


def test_to_hand_back_is_no_attempt(records):
    """However often a fleet is scaled down."""
    _plan(records, _columns())
    for _ in range(5):
        leases.hand_back_task(records, take(records, _columns().key, "w"))
    lease = take(records, _columns().key, "w")
    leases.fail_attempt(
        records, lease, {"code": "internal", "detail": "x"}, death=False, retry=True
    )
    assert _status(records, _columns()) == "ready"


def test_a_lease_that_is_extended_in_time_is_not_taken_away(records, monkeypatch):
    """The worker beats after the janitor has looked, and before it acts."""
    _plan(records, _columns())
    monkeypatch.setattr(leases, "LEASE_SECONDS", -1.0)
    lease = take(records, _columns().key, "w")
    monkeypatch.undo()

    class ThenItBeats(Records):
        @contextlib.contextmanager
        def reading(self):
            with super().reading() as connection:
                yield connection
            leases.extend_lease(records, lease, 1, 2)

    task_expiry.expire_leases(ThenItBeats(records.engine))
    assert leases.finish_attempt(records, lease, "sha256:r", {})


def test_a_dead_workers_works_are_ready_at_once_and_no_other_ones(records, tmp_path):
    dead, alive = presence.name_worker("metrics"), presence.name_worker("metrics")
    others = _columns("other")
    _plan(records, _columns(), others)
    with presence.stay_present(tmp_path, dead), presence.stay_present(tmp_path, alive):
        take(records, _columns().key, dead)
        take(records, others.key, alive)
        assert task_expiry.end_leases_of_dead_workers(records, tmp_path) == 0
        (tmp_path / "workers" / dead).unlink()
        (tmp_path / "workers" / dead).touch()  # as a kill leaves it: there, and not locked
        assert task_expiry.end_leases_of_dead_workers(records, tmp_path) == 1
        assert (_status(records, _columns()), _status(records, others)) == ("ready", "running")
        assert [path.name for path in (tmp_path / "workers").iterdir()] == [alive]
    assert take(records, _columns().key, "w").attempt == 2


def test_a_failure_without_retry_is_final(records):
    _plan(records, _columns())
    lease = take(records, _columns().key, "w")
    leases.fail_attempt(
        records, lease, {"code": "timeout", "detail": "late"}, death=False, retry=False
    )
    assert _evaluation(records) == "failed"


def test_the_same_task_planned_again_is_not_run_again(records):
    _plan(records, _pregen())
    leases.finish_attempt(records, take(records, _columns().key, "w"), "sha256:r", {})
    leases.finish_attempt(records, take(records, _pregen().key, "w"), "sha256:s", {})
    cached = _plan(records, _pregen(), evaluation="ev_2")
    assert all(cached.values())
    assert _evaluation(records, "ev_2") == "succeeded"
    assert len(_column(records, "task_key", outbox)) == 2


def test_a_failed_task_starts_afresh_and_the_old_evaluation_stays_failed(records):
    _plan(records, _columns())
    lease = take(records, _columns().key, "w")
    leases.fail_attempt(
        records, lease, {"code": "timeout", "detail": "late"}, death=False, retry=False
    )
    _plan(records, _columns(), evaluation="ev_2")
    assert _status(records, _columns()) == "ready"
    leases.finish_attempt(records, take(records, _columns().key, "w"), "sha256:r", {})
    assert (_evaluation(records), _evaluation(records, "ev_2")) == ("failed", "succeeded")


def _cancel(records, identity):
    with records.transaction() as connection:
        task_expiry.cancel_run(connection, identity)


def test_cancel_ends_what_nobody_else_waits_for(records):
    shared, alone = _columns("shared"), _columns("alone")
    _plan(records, shared, alone)
    _plan(records, shared, evaluation="ev_2")
    _cancel(records, "ev_1")
    assert (_status(records, shared), _status(records, alone)) == ("ready", "canceled")
    assert (_evaluation(records), _evaluation(records, "ev_2")) == ("canceled", "queued")
    leases.finish_attempt(records, take(records, shared.key, "w"), "sha256:r", {})
    assert (_evaluation(records), _evaluation(records, "ev_2")) == ("canceled", "succeeded")


def test_cancel_leaves_what_a_task_of_another_run_needs(records):
    """Whether or not that run names it: shards are named by no run."""
    parts = [Task("columns", _columns().inputs, {"images": [at, at + 1]}) for at in range(2)]
    whole, other = _columns(parts=parts[:1]), _columns("other", parts=parts)
    _plan(records, whole, parts[0])
    _plan(records, _pregen(other), evaluation="ev_2")
    _cancel(records, "ev_1")
    assert [_status(records, each) for each in (whole, *parts, other)] == [
        *("canceled", "ready", "ready", "waiting")
    ]
    _cancel(records, "ev_2")
    assert {_status(records, each) for each in (*parts, other)} == {"canceled"}


def test_cancel_names_no_other_run_however_many_are_unfinished(records):
    """SQLite takes 32,766 values in a statement; here, so that few runs show it, 100."""
    shared, alone = _columns("shared"), _columns("alone")
    _plan(records, shared, alone)
    _plan(records, shared, evaluation="ev_2")
    with records.transaction() as connection:
        (row,) = connection.execute(sa.select(runs).where(runs.c.id == "ev_2")).mappings()
        connection.execute(runs.insert(), [{**row, "id": f"ev_many_{at}"} for at in range(150)])
    with records.transaction() as connection:
        if records.is_file:
            own = connection.connection.driver_connection
            own.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 100)
        task_expiry.cancel_run(connection, "ev_1")
    assert (_status(records, shared), _status(records, alone)) == ("ready", "canceled")


def test_a_canceled_task_refuses_its_result(records):
    _plan(records, _columns())
    lease = take(records, _columns().key, "w")
    _cancel(records, "ev_1")
    assert not leases.extend_lease(records, lease, 1, 2)
    assert not leases.finish_attempt(records, lease, "sha256:r", {})
    assert _status(records, _columns()) == "canceled"


def test_who_was_canceled_is_not_taken_for_who_has_the_task_now(records):
    """The task is asked for again before the first worker has noticed: both are attempt 1."""
    _plan(records, _columns())
    before = take(records, _columns().key, "w1")
    _cancel(records, "ev_1")
    _plan(records, _columns(), evaluation="ev_2")
    now = take(records, _columns().key, "w2")
    assert (before.attempt, now.attempt) == (1, 1)
    assert not leases.extend_lease(records, before, 1, 2)
    assert not leases.finish_attempt(records, before, "sha256:old", {})
    leases.fail_attempt(records, before, ERROR, death=True, retry=True)
    leases.hand_back_task(records, before)
    assert _status(records, _columns()) == "running"
    assert leases.finish_attempt(records, now, "sha256:new", {})
    assert _column(records, "result", key=_columns().key) == ["sha256:new"]
    outcomes = _column(records, "outcome", attempts, task_key=_columns().key)
    assert sorted(outcomes) == ["done", "given up"]


def test_an_attempt_at_a_canceled_task_ends_as_given_up(records):
    """Its worker may have died: nobody else would end it."""
    _plan(records, _columns())
    lease = take(records, _columns().key, "w")
    _cancel(records, "ev_1")
    assert _column(records, "outcome", attempts, id=lease.id) == ["given up"]
    (ended,) = _column(records, "ended_at", attempts, id=lease.id)
    assert not leases.finish_attempt(records, lease, "sha256:late", {})
    assert _column(records, "outcome", attempts, id=lease.id) == ["given up"]
    assert _column(records, "ended_at", attempts, id=lease.id) == [ended]


def test_canceling_ends_no_attempt_that_another_run_needs(records):
    _plan(records, _columns())
    _plan(records, _columns(), evaluation="ev_2")
    lease = take(records, _columns().key, "w")
    _cancel(records, "ev_1")
    assert _column(records, "outcome", attempts, id=lease.id) == [None]
    assert leases.finish_attempt(records, lease, "sha256:r", {})


def test_an_attempt_ends_with_the_deadline_of_its_run(records):
    shared = _columns("b")
    _plan(records, _columns(), shared, deadline=time.time() - 1)
    _plan(records, shared, evaluation="ev_2")
    late, needed = (take(records, task.key, "w") for task in (_columns(), shared))
    task_expiry.expire_deadlines(records)
    assert _column(records, "outcome", attempts, id=late.id) == ["timeout"]
    assert _column(records, "outcome", attempts, id=needed.id) == [None]


def test_a_lease_says_how_long_its_task_was_ready(records):
    _plan(records, _pregen())
    with records.transaction() as connection:
        connection.execute(task_rows.update().values(created_at=0.0))
        ready = task_rows.c.status == "ready"
        connection.execute(task_rows.update().where(ready).values(ready_at=time.time() - 5))
    lease = take(records, _columns().key, "w")
    assert 5 <= lease.waited < 60
    leases.finish_attempt(records, lease, "sha256:r", {})
    assert take(records, _pregen().key, "w").waited < 5  # it waited for the columns until now
    assert lease.queue == "inference-now"


@pytest.mark.long
def test_races_of_cancel_and_finish_have_one_winner(records):
    """Trial 31's core: never two final states."""
    for number in range(10):
        task, identity = _columns(f"race{number}"), f"ev_race{number}"
        _plan(records, task, evaluation=identity)
        lease = take(records, task.key, "w")
        with ThreadPoolExecutor(2) as pool:
            finished = pool.submit(leases.finish_attempt, records, lease, "sha256:r", {})
            pool.submit(_cancel, records, identity).result()
        ends = [event for event in _events(records, identity) if event.kind == "end"]
        assert len(ends) == 1
        expected = "succeeded" if finished.result() else "canceled"
        assert _evaluation(records, identity) == expected


def test_a_worker_that_stops_hands_its_work_back(records):
    _plan(records, _columns())
    leases.hand_back_task(records, take(records, _columns().key, "w1"))
    assert _status(records, _columns()) == "ready"
    assert take(records, _columns().key, "w2") is not None


def test_a_damaged_input_is_computed_again_and_waited_for(records):
    """Trial 17's core."""
    _plan(records, _pregen())
    leases.finish_attempt(records, take(records, _columns().key, "w"), "sha256:bad", {})
    lease = take(records, _pregen().key, "w")
    assert leases.recompute_input(records, lease, "sha256:bad")
    assert (_status(records, _columns()), _status(records, _pregen())) == ("ready", "waiting")
    leases.finish_attempt(records, take(records, _columns().key, "w"), "sha256:good", {})
    assert take(records, _pregen().key, "w").inputs == {"columns": "sha256:good"}


def test_a_result_that_was_given_by_its_digest_is_waited_for_too(records):
    reader = Task("nneval", {"model": Blob("sha256:bad")}, {})
    _plan(records, _columns(), reader)
    leases.finish_attempt(records, take(records, _columns().key, "w"), "sha256:bad", {})
    assert leases.recompute_input(records, take(records, reader.key, "w"), "sha256:bad")
    assert _status(records, reader) == "waiting"
    leases.finish_attempt(records, take(records, _columns().key, "w"), "sha256:bad", {})
    assert _status(records, reader) == "ready"


def test_whoever_was_about_to_read_a_damaged_result_waits_for_it_too(records):
    other = Task("pregen", {"columns": _columns()}, {"another": True})
    _plan(records, _pregen(), other)
    leases.finish_attempt(records, take(records, _columns().key, "w"), "sha256:bad", {})
    assert leases.recompute_input(records, take(records, _pregen().key, "w"), "sha256:bad")
    assert take(records, other.key, "w") is None
    leases.finish_attempt(records, take(records, _columns().key, "w"), "sha256:good", {})
    for task in (_pregen(), other):
        assert take(records, task.key, "w").inputs == {"columns": "sha256:good"}


def _both():
    """A task that needs two others."""
    return Task("pregen", {"columns": _columns("a"), "more": _columns("b")}, {})


def _done(records, task, result):
    assert leases.finish_attempt(records, take(records, task.key, "w"), result, {})


def test_what_is_made_again_is_not_counted_twice_by_those_who_wait_for_more(records):
    _plan(records, _pregen(_columns("a")), _both())
    _done(records, _columns("a"), "sha256:bad")
    lease = take(records, _pregen(_columns("a")).key, "w")
    assert leases.recompute_input(records, lease, "sha256:bad")
    _done(records, _columns("a"), "sha256:good")
    assert _status(records, _both()) == "waiting"
    assert take(records, _both().key, "w") is None
    _done(records, _columns("b"), "sha256:b")
    found = take(records, _both().key, "w")
    assert found.inputs == {"columns": "sha256:good", "more": "sha256:b"}


def test_who_waits_for_more_waits_for_what_is_made_again_too(records):
    _plan(records, _pregen(_columns("a")), _both())
    _done(records, _columns("a"), "sha256:bad")
    lease = take(records, _pregen(_columns("a")).key, "w")
    assert leases.recompute_input(records, lease, "sha256:bad")
    _done(records, _columns("b"), "sha256:b")
    assert _status(records, _both()) == "waiting"
    _done(records, _columns("a"), "sha256:good")
    found = take(records, _both().key, "w")
    assert found.inputs == {"columns": "sha256:good", "more": "sha256:b"}


def test_two_who_find_the_same_damage_wait_for_one_repair(records):
    other = Task("pregen", {"columns": _columns()}, {"another": True})
    _plan(records, _pregen(), other)
    _done(records, _columns(), "sha256:bad")
    first, second = (take(records, task.key, "w") for task in (_pregen(), other))
    assert leases.recompute_input(records, first, "sha256:bad")
    assert leases.recompute_input(records, second, "sha256:bad")
    _done(records, _columns(), "sha256:good")
    for task in (_pregen(), other):
        assert take(records, task.key, "w").inputs == {"columns": "sha256:good"}


def test_who_finds_the_damage_when_it_has_been_repaired_reads_what_is_there_now(records):
    other = Task("pregen", {"columns": _columns()}, {"another": True})
    _plan(records, _pregen(), other)
    _done(records, _columns(), "sha256:bad")
    first, second = (take(records, task.key, "w") for task in (_pregen(), other))
    assert leases.recompute_input(records, first, "sha256:bad")
    _done(records, _columns(), "sha256:good")
    assert leases.recompute_input(records, second, "sha256:bad")
    assert take(records, other.key, "w").inputs == {"columns": "sha256:good"}


def test_what_is_damaged_after_its_evaluations_deadline_is_made_again_for_the_next_one(records):
    soon = time.time() + 60
    _plan(records, _columns(), deadline=soon - 120)
    _done(records, _columns(), "sha256:bad")
    _plan(records, _pregen(), evaluation="ev_2", deadline=soon)
    lease = take(records, _pregen().key, "w")
    assert leases.recompute_input(records, lease, "sha256:bad")
    assert take(records, _columns().key, "w").deadline == soon


def test_a_sharded_task_is_made_again_with_those_shards_that_are_not_there(records):
    whole = _sharded(2)
    _plan(records, whole, _pregen(whole))
    for number, part in enumerate(whole.parts):
        _done(records, part, f"sha256:{number}")
    _done(records, whole, "sha256:bad")
    with records.transaction() as connection:
        lost = task_rows.update().where(task_rows.c.key == whole.parts[1].key)
        connection.execute(lost.values(status="canceled", result=None))
    assert leases.recompute_input(records, take(records, _pregen(whole).key, "w"), "sha256:bad")
    assert take(records, whole.key, "w") is None
    _done(records, whole.parts[1], "sha256:again")
    assert take(records, whole.key, "w").parts == ("sha256:0", "sha256:again")


def test_a_damaged_upload_cannot_be_computed_again(records):
    _plan(records, _columns())
    assert not leases.recompute_input(records, take(records, _columns().key, "w"), "sha256:a")


def test_events_are_numbered_by_versions_without_a_gap(records):
    _plan(records, _pregen())
    for task in (_columns(), _pregen()):
        lease = take(records, task.key, "w")
        leases.extend_lease(records, lease, 1, 2)
        leases.finish_attempt(
            records, lease, "sha256:r", {"scores": {"perplexity": 2.0}, "signature": "s"}
        )
    found = _events(records, "ev_1")
    assert [event.version for event in found] == list(range(2, 2 + len(found)))
    assert found[-1].kind == "end"


def test_an_evaluation_past_its_deadline_fails_with_timeout(records):
    _plan(records, _pregen(), deadline=time.time() - 1)
    assert task_expiry.expire_deadlines(records) == 1
    assert _evaluation(records) == "failed"
    assert "timeout" in _column(records, "error", key=_columns().key)[0]


@pytest.mark.long
def test_readiness_is_never_lost_between_a_plan_and_a_finish(records):
    """A dependent planned at the very moment when its need is done must become ready."""
    for number in range(10):
        columns = _columns(f"r{number}")
        _plan(records, columns, evaluation=f"ev_a{number}")
        lease = take(records, columns.key, "w")
        with ThreadPoolExecutor(2) as pool:
            pool.submit(leases.finish_attempt, records, lease, "sha256:r", {})
            pool.submit(_plan, records, _pregen(columns), evaluation=f"ev_b{number}").result()
        assert _status(records, _pregen(columns)) == "ready"


def _sharded(size, images=4):
    spans = [[start, min(start + size, images)] for start in range(0, images, size)]
    return _columns(
        parts=[Task("columns", _columns().inputs, {"split": "test", "images": at}) for at in spans]
    )


def _shown(records, identity="ev_1"):
    """What an evaluation shows of its tasks, by name."""
    with records.reading() as connection:
        return {row["name"]: row for row in history.task_statuses(connection, identity)}


def test_shards_are_shown_as_the_task_that_they_make_up(records):
    whole = _sharded(2)
    _plan(records, whole, _pregen(whole))
    assert _evaluation(records) == "queued"
    first = take(records, whole.parts[0].key, "w")
    leases.extend_lease(records, first, 1, 2)
    shown = _shown(records)["columns"]
    assert (shown["status"], shown["done"], shown["total"]) == ("running", 1, 4)
    assert shown["started_at"] is not None
    assert _evaluation(records) == "running"
    assert _shown(records)["pregen"]["status"] == "waiting"
    leases.finish_attempt(records, first, "sha256:0", {})
    leases.fail_attempt(
        records, take(records, whole.parts[1].key, "w"), ERROR, death=True, retry=True
    )
    take(records, whole.parts[1].key, "w")
    shown = _shown(records)["columns"]
    assert (shown["done"], shown["attempt"]) == (2, 2)


def test_a_shards_progress_is_told_as_the_tasks(records):
    whole = _sharded(2)
    _plan(records, whole)
    lease = take(records, whole.parts[0].key, "w")
    leases.extend_lease(records, lease, 1, 2)
    told = [json.loads(event.payload) for event in _events(records, "ev_1")]
    assert told[-1]["name"] == "columns"
    assert told[-1]["progress"] == {"done": 1, "total": 4}


def test_the_end_of_a_task_ends_its_progress(records):
    """Whatever the last beat told, a second before."""
    task = _columns()
    _plan(records, task)
    lease = take(records, task.key, "w")
    leases.extend_lease(records, lease, 90, 100)
    assert leases.finish_attempt(records, lease, "sha256:a", {})
    assert _column(records, "done", key=task.key) == [100]
    found = _events(records, "ev_1")
    told = [json.loads(event.payload) for event in found if event.kind == "task"]
    assert told[-1]["progress"] == {"done": 100, "total": 100}


def test_a_shards_error_is_the_tasks_and_the_other_shards_are_not_tried(records):
    whole = _sharded(1)
    _plan(records, whole, _pregen(whole))
    error = {"code": "invalid_checkpoint", "detail": "not finite"}
    leases.fail_attempt(
        records, take(records, whole.parts[1].key, "w"), error, death=False, retry=False
    )
    assert json.loads(_column(records, "error", key=whole.key)[0]) == error
    assert json.loads(_column(records, "error", key=_pregen().key)[0])["code"] == "needs_failed"
    assert _evaluation(records) == "failed"
    assert take(records, whole.parts[2].key, "w") is None


def test_a_task_that_is_done_needs_no_shards_of_another_size(records):
    whole = _sharded(2)
    _plan(records, whole)
    for part in (*whole.parts, whole):
        leases.finish_attempt(records, take(records, part.key, "w"), "sha256:r", {})
    other = _sharded(1)
    assert other.key == whole.key
    cached = _plan(records, other, evaluation="ev_2")
    assert all(cached.values())
    assert not _column(records, "key", key=other.parts[0].key)


def test_a_task_that_begins_again_is_joined_from_its_new_shards(records):
    whole, other = _sharded(2), _sharded(1)
    _plan(records, whole)
    leases.fail_attempt(
        records, take(records, whole.parts[0].key, "w"), ERROR, death=False, retry=False
    )
    _plan(records, other, evaluation="ev_2")
    for place, part in enumerate(other.parts):
        assert take(records, whole.key, "w") is None
        leases.finish_attempt(records, take(records, part.key, "w"), f"sha256:{place}", {})
    lease = take(records, whole.key, "w")
    assert lease.parts == ("sha256:0", "sha256:1", "sha256:2", "sha256:3")


def test_what_cannot_be_computed_here_takes_its_dependents_along_and_fails_nobody(records):
    """Shards, the task that they make up, and what waits for that; another task goes on."""
    whole = _sharded(2)
    parts = whole.parts
    other = _columns("other")
    _plan(records, whole, _pregen(whole), other)
    reason = {"code": "unavailable", "detail": "no CoreNLP here"}
    assert leases.make_task_unavailable(records, take(records, parts[0].key, "w"), reason)
    for task in (parts[0], whole, _pregen(whole)):
        assert _status(records, task) == "unavailable"
        assert json.loads(_column(records, "error", key=task.key)[0]) == reason
    assert _status(records, parts[1]) == "canceled"
    leases.finish_attempt(records, take(records, other.key, "w"), "sha256:r", {})
    with records.reading() as connection:
        assert connection.execute(sa.select(runs.c.status)).scalar() == "succeeded"
        assert "unavailable" in connection.execute(sa.select(attempts.c.outcome)).scalars().all()


def test_an_unavailable_task_starts_afresh_with_a_new_request(records):
    task, reason = _columns(), {"code": "unavailable", "detail": "no CoreNLP here"}
    _plan(records, task)
    assert leases.make_task_unavailable(records, take(records, task.key, "w"), reason)
    _plan(records, task, evaluation="ev_2")
    assert _status(records, task) == "ready"
    assert take(records, task.key, "w").attempt == 1


def test_a_task_that_hundreds_share_tells_some_of_them_in_each_transaction(records, monkeypatch):
    monkeypatch.setattr(history, "TOLD_AT_ONCE", 3)
    names = [f"ev_{number}" for number in range(8)]
    for name in names:
        _plan(records, _columns(), evaluation=name)
    lease = take(records, _columns().key, "w")
    leases.extend_lease(records, lease, 1, 2)
    leases.finish_attempt(records, lease, "sha256:r", {})
    statuses = [_evaluation(records, name) for name in names]
    assert (statuses.count("succeeded"), len(_column(records, "run_id", untold))) == (3, 5)
    assert history.update_noted_runs(records, most=1) == 3
    assert history.update_noted_runs(records) == 2
    assert [_evaluation(records, name) for name in names] == ["succeeded"] * 8
    for name in names:
        told = [event.kind for event in _events(records, name)]
        assert (told.count("end"), told[-1]) == (1, "end")
    assert history.update_noted_runs(records) == 0
