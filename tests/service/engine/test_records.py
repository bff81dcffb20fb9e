"""The tasks engine: every statement on SQLite and PostgreSQL alike (trial 36)."""

import contextlib
import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from helpers.stored_records import PINNED, enter_run, take_task
from service.contract.plan.tasks import Blob, Task
from service.engine import history, intake, leases, presence, task_expiry
from service.engine.records import Records
from service.engine.tables import attempts, outbox, run_tasks, runs, task_rows, untold

SOON = 1e12
REQUEST = {"checkpoint": None, "postgen": []}
ERROR = {"code": "worker_lost", "detail": "killed"}
MISSING = {"code": "unavailable", "detail": "no CoreNLP here"}


def _columns(checkpoint="a", parts=()):
    inputs = {"checkpoint": Blob(f"sha256:{checkpoint}"), "dataset": Blob("sha256:d")}
    return Task("columns", inputs, {"split": "test"}, tuple(parts))


def _pregen(columns=None):
    return Task("pregen", {"columns": columns or _columns()}, {})


COLUMNS = _columns()
PREGEN = _pregen()
OTHER = Task("pregen", {"columns": COLUMNS}, {"another": True})


def _take(records, task, worker="w"):
    return take_task(records, task.key, worker)


def _done(records, task, result="sha256:r"):
    assert leases.finish_attempt(records, _take(records, task), result, {})


def _fail(records, task, error=ERROR, *, death=False, retry=False):
    leases.fail_attempt(records, _take(records, task), error, death=death, retry=retry)


def _make_unavailable(records, task):
    assert leases.make_task_unavailable(records, _take(records, task), MISSING)


def _repaired(records, lease):
    """A worker finds that an input is damaged, and the task that made it begins anew."""
    assert leases.recompute_input(records, lease, "sha256:bad")


def _events(records, identity):
    with records.reading() as connection:
        return history.read_events_after(connection, identity, 0)


def _plan(records, *tasks, evaluation="ev_1", deadline=SOON):
    """Adds tasks and an evaluation that names them; key -> was it done."""
    everything = {step.key: step for task in tasks for step in task.everything()}
    with records.transaction() as connection:
        cached = intake.add_tasks(records, connection, list(everything.values()), deadline)
        times = {"deadline": deadline, "created_at": time.time()}
        enter_run(connection, evaluation, PINNED, REQUEST, status="queued", **times)
        for position, task in enumerate(tasks):
            named = {"run_id": evaluation, "position": position, "name": task.kind}
            named |= {"task_key": task.key, "cached": cached[task.key]}
            connection.execute(run_tasks.insert().values(named))
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


def test_a_task_is_ready_when_all_that_it_needs_is_done_and_readiness_is_a_wake_up(on_either):
    _plan(on_either, PREGEN)
    assert (_status(on_either, COLUMNS), _status(on_either, PREGEN)) == ("ready", "waiting")
    assert _column(on_either, "task_key", outbox) == [COLUMNS.key]
    lease = _take(on_either, COLUMNS)
    assert lease.inputs == {"checkpoint": "sha256:a", "dataset": "sha256:d"}
    assert leases.finish_attempt(on_either, lease, "sha256:result", {})
    assert _status(on_either, PREGEN) == "ready"
    assert _column(on_either, "task_key", outbox) == [COLUMNS.key, PREGEN.key]
    assert _take(on_either, PREGEN).inputs == {"columns": "sha256:result"}


def test_only_one_worker_gets_a_lease(on_either):
    _plan(on_either, COLUMNS)
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda n: take_task(on_either, COLUMNS.key, f"w{n}"), range(16)))
    assert len([lease for lease in taken if lease is not None]) == 1


def test_a_late_attempt_is_refused_and_the_current_one_counts(on_either, monkeypatch):
    """Trial 23's core: the lease ran out, another worker took over, the first one comes back."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", -1.0)
    _plan(on_either, COLUMNS)
    late = _take(on_either, COLUMNS)
    assert task_expiry.expire_leases(on_either) == 1
    current = _take(on_either, COLUMNS)
    assert current.attempt == late.attempt + 1
    assert not leases.extend_lease(on_either, late)
    assert not leases.finish_attempt(on_either, late, "sha256:late", {})
    assert leases.finish_attempt(on_either, current, "sha256:right", {})
    assert _column(on_either, "result", key=COLUMNS.key) == ["sha256:right"]
    assert not leases.finish_attempt(on_either, late, "sha256:late", {})
    assert _column(on_either, "result", key=COLUMNS.key) == ["sha256:right"]


def test_a_work_that_kills_two_workers_is_quarantined(records):
    """Trial 28's core."""
    _plan(records, PREGEN)
    for _ in range(2):
        _fail(records, COLUMNS, death=True, retry=True)
    assert _status(records, COLUMNS) == "failed"
    assert _status(records, PREGEN) == "failed"
    assert _evaluation(records) == "failed"
    assert _take(records, COLUMNS) is None
    ended = _column(records, "outcome", attempts, task_key=COLUMNS.key)
    assert ended == ["worker_lost"] * 2


def test_workers_that_fall_silent_are_no_failures_of_the_task_but_not_for_ever(
    records, monkeypatch
):
    monkeypatch.setattr(leases, "LEASE_SECONDS", -1.0)
    _plan(records, COLUMNS)
    for _ in range(leases.MAX_LOSSES):
        assert _take(records, COLUMNS) is not None
        assert task_expiry.expire_leases(records) == 1
    assert _status(records, COLUMNS) == "failed"
    assert "worker_lost" in _column(records, "error", key=COLUMNS.key)[0]


def _lose(records, done, total=100):
    lease = _take(records, COLUMNS)
    leases.store_progress(records, lease, done, total)
    leases.lose_attempt(records, lease, ERROR, killed=True)


@pytest.mark.parametrize(
    ("places", "status", "deaths"),
    [((0, 0, 0, 10, 20, 10, 30, 0), "ready", 0), ((40, 40, 40), "failed", 2)],
)
def test_a_task_that_is_killed_is_tried_again_unless_it_is_always_at_the_same_place(
    records, places, status, deaths
):
    """Of a child that the system kills it is not always known why."""
    _plan(records, COLUMNS)
    for done in places:
        _lose(records, done)
    assert _status(records, COLUMNS) == status
    assert _column(records, "deaths", key=COLUMNS.key) == [deaths]


def test_three_errors_of_its_own_are_enough(on_either):
    """Whatever has happened from outside in between: to hand a task back is no attempt."""
    _plan(on_either, COLUMNS)
    for _ in range(3):
        assert _status(on_either, COLUMNS) == "ready"
        _lose(on_either, 0)
        leases.hand_back_task(on_either, _take(on_either, COLUMNS))
        _fail(on_either, COLUMNS, death=False, retry=True)
    assert _status(on_either, COLUMNS) == "failed"


def test_a_lease_that_is_extended_in_time_is_not_taken_away(on_either, monkeypatch):
    """The worker beats after the janitor has looked, and before it acts."""
    _plan(on_either, COLUMNS)
    monkeypatch.setattr(leases, "LEASE_SECONDS", -1.0)
    lease = _take(on_either, COLUMNS)
    monkeypatch.undo()

    class ThenItBeats(Records):
        @contextlib.contextmanager
        def reading(self):
            with super().reading() as connection:
                yield connection
            leases.extend_lease(on_either, lease)

    task_expiry.expire_leases(ThenItBeats(on_either.engine))
    assert leases.finish_attempt(on_either, lease, "sha256:r", {})


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_lease_is_extended_while_another_one_writes(on_either):
    """However long, as long as it is another row: a beat waits for nobody."""
    _plan(on_either, PREGEN)
    lease = _take(on_either, COLUMNS)
    before = _column(on_either, "lease_until", key=COLUMNS.key)
    with on_either.transaction() as connection:
        connection.execute(task_rows.update().where(task_rows.c.key == PREGEN.key).values(done=1))
        assert leases.extend_lease(on_either, lease)
    assert _column(on_either, "lease_until", key=COLUMNS.key) > before


def test_a_dead_workers_works_are_ready_at_once_and_no_other_ones(on_either, tmp_path):
    dead, alive = presence.name_worker("metrics"), presence.name_worker("metrics")
    others = _columns("other")
    _plan(on_either, COLUMNS, others)
    with presence.stay_present(tmp_path, dead), presence.stay_present(tmp_path, alive):
        _take(on_either, COLUMNS, dead)
        _take(on_either, others, alive)
        assert task_expiry.end_leases_of_dead_workers(on_either, tmp_path) == 0
        (tmp_path / "workers" / dead).unlink()
        (tmp_path / "workers" / dead).touch()  # as a kill leaves it: there, and not locked
        assert task_expiry.end_leases_of_dead_workers(on_either, tmp_path) == 1
        assert (_status(on_either, COLUMNS), _status(on_either, others)) == ("ready", "running")
        assert [path.name for path in (tmp_path / "workers").iterdir()] == [alive]
    assert _take(on_either, COLUMNS).attempt == 2


@pytest.mark.parametrize("end", [_fail, _make_unavailable])
def test_a_task_without_a_result_starts_afresh_with_a_new_request(records, end):
    """The old evaluation stays as it ended."""
    _plan(records, COLUMNS)
    end(records, COLUMNS)
    ended = _evaluation(records)
    assert ended == ("failed" if end is _fail else "succeeded")
    _plan(records, COLUMNS, evaluation="ev_2")
    assert _status(records, COLUMNS) == "ready"
    lease = _take(records, COLUMNS)
    assert lease.attempt == 1
    leases.finish_attempt(records, lease, "sha256:r", {})
    assert (_evaluation(records), _evaluation(records, "ev_2")) == (ended, "succeeded")


def _cancel(records, identity):
    with records.transaction() as connection:
        task_expiry.cancel_run(connection, identity)


def test_cancel_ends_what_nobody_else_waits_for(records):
    shared, alone = _columns("shared"), _columns("alone")
    _plan(records, shared, alone)
    _plan(records, shared, evaluation="ev_2")
    lease = _take(records, shared)
    _cancel(records, "ev_1")
    assert (_status(records, shared), _status(records, alone)) == ("running", "canceled")
    assert (_evaluation(records), _evaluation(records, "ev_2")) == ("canceled", "running")
    assert _column(records, "outcome", attempts, id=lease.id) == [None]
    assert leases.finish_attempt(records, lease, "sha256:r", {})
    assert (_evaluation(records), _evaluation(records, "ev_2")) == ("canceled", "succeeded")


def test_cancel_leaves_what_a_task_of_another_run_needs(on_either):
    """Whether or not that run names it: shards are named by no run."""
    parts = [Task("columns", COLUMNS.inputs, {"images": [at, at + 1]}) for at in range(2)]
    whole, other = _columns(parts=parts[:1]), _columns("other", parts=parts)
    _plan(on_either, whole, parts[0])
    _plan(on_either, _pregen(other), evaluation="ev_2")
    _cancel(on_either, "ev_1")
    assert [_status(on_either, each) for each in (whole, *parts, other)] == [
        *("canceled", "ready", "ready", "waiting")
    ]
    _cancel(on_either, "ev_2")
    assert {_status(on_either, each) for each in (*parts, other)} == {"canceled"}


def test_cancel_names_no_other_run_however_many_are_unfinished(on_either):
    """SQLite takes 32,766 values in a statement; here, so that few runs show it, 100."""
    shared, alone = _columns("shared"), _columns("alone")
    _plan(on_either, shared, alone)
    _plan(on_either, shared, evaluation="ev_2")
    with on_either.transaction() as connection:
        (row,) = connection.execute(sa.select(runs).where(runs.c.id == "ev_2")).mappings()
        connection.execute(runs.insert(), [{**row, "id": f"ev_many_{at}"} for at in range(150)])
    with on_either.transaction() as connection:
        if on_either.is_file:
            own = connection.connection.driver_connection
            own.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 100)
        task_expiry.cancel_run(connection, "ev_1")
    assert (_status(on_either, shared), _status(on_either, alone)) == ("ready", "canceled")


def test_who_was_canceled_is_refused_and_not_taken_for_who_has_the_task_now(on_either):
    """Its worker may have died, and nobody else would end its attempt. The task is asked for again
    before the worker has noticed: both are attempt 1.
    """
    _plan(on_either, COLUMNS)
    before = _take(on_either, COLUMNS)
    _cancel(on_either, "ev_1")
    ended = _column(on_either, "ended_at", attempts, id=before.id)
    assert not leases.finish_attempt(on_either, before, "sha256:late", {})
    assert _status(on_either, COLUMNS) == "canceled"
    assert _column(on_either, "ended_at", attempts, id=before.id) == ended != [None]
    _plan(on_either, COLUMNS, evaluation="ev_2")
    now = _take(on_either, COLUMNS)
    assert (before.attempt, now.attempt) == (1, 1)
    assert not leases.extend_lease(on_either, before)
    assert not leases.finish_attempt(on_either, before, "sha256:old", {})
    leases.fail_attempt(on_either, before, ERROR, death=True, retry=True)
    leases.hand_back_task(on_either, before)
    assert _status(on_either, COLUMNS) == "running"
    assert leases.finish_attempt(on_either, now, "sha256:new", {})
    assert _column(on_either, "result", key=COLUMNS.key) == ["sha256:new"]
    outcomes = _column(on_either, "outcome", attempts, task_key=COLUMNS.key)
    assert sorted(outcomes) == ["done", "given up"]


def test_a_run_past_its_deadline_fails_with_timeout_and_so_do_its_attempts(on_either):
    shared = _columns("b")
    _plan(on_either, COLUMNS, deadline=time.time() - 1)
    _plan(on_either, shared, evaluation="ev_2", deadline=time.time() - 1)
    _plan(on_either, shared, evaluation="ev_3")
    late, needed = (_take(on_either, task) for task in (COLUMNS, shared))
    assert task_expiry.expire_deadlines(on_either) == 2
    assert _evaluation(on_either) == "failed"
    assert "timeout" in _column(on_either, "error", key=COLUMNS.key)[0]
    assert _column(on_either, "outcome", attempts, id=late.id) == ["timeout"]
    assert _column(on_either, "outcome", attempts, id=needed.id) == [None]


def test_a_lease_says_how_long_its_task_was_ready(records):
    _plan(records, PREGEN)
    with records.transaction() as connection:
        connection.execute(task_rows.update().values(created_at=0.0))
        ready = task_rows.c.status == "ready"
        connection.execute(task_rows.update().where(ready).values(ready_at=time.time() - 5))
    lease = _take(records, COLUMNS)
    assert 5 <= lease.waited < 60
    leases.finish_attempt(records, lease, "sha256:r", {})
    assert _take(records, PREGEN).waited < 5  # it waited for the columns until now
    assert lease.queue == "inference-now"


@pytest.mark.long
def test_races_of_cancel_and_finish_have_one_winner(on_either):
    """Trial 31's core: never two final states."""
    for number in range(10):
        task, identity = _columns(f"race{number}"), f"ev_race{number}"
        _plan(on_either, task, evaluation=identity)
        lease = _take(on_either, task)
        with ThreadPoolExecutor(2) as pool:
            finished = pool.submit(leases.finish_attempt, on_either, lease, "sha256:r", {})
            pool.submit(_cancel, on_either, identity).result()
        ends = [event for event in _events(on_either, identity) if event.kind == "end"]
        assert len(ends) == 1
        expected = "succeeded" if finished.result() else "canceled"
        assert _evaluation(on_either, identity) == expected


def test_a_damaged_input_is_computed_again_and_waited_for_by_all_who_read_it(records):
    """Trial 17's core."""
    _plan(records, PREGEN, OTHER)
    _done(records, COLUMNS, "sha256:bad")
    _repaired(records, _take(records, PREGEN))
    assert (_status(records, COLUMNS), _status(records, PREGEN)) == ("ready", "waiting")
    assert _take(records, OTHER) is None
    _done(records, COLUMNS, "sha256:good")
    for task in (PREGEN, OTHER):
        assert _take(records, task).inputs == {"columns": "sha256:good"}


def test_a_result_that_was_given_by_its_digest_is_waited_for_too(records):
    reader = Task("nneval", {"model": Blob("sha256:bad")}, {})
    _plan(records, COLUMNS, reader)
    _done(records, COLUMNS, "sha256:bad")
    _repaired(records, _take(records, reader))
    assert _status(records, reader) == "waiting"
    _done(records, COLUMNS, "sha256:bad")
    assert _status(records, reader) == "ready"


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_what_is_made_again_counts_once_for_those_who_wait_for_more(on_either, order):
    both = Task("pregen", {"columns": _columns("a"), "more": _columns("b")}, {})
    _plan(on_either, PREGEN, both)
    _done(on_either, COLUMNS, "sha256:bad")
    _repaired(on_either, _take(on_either, PREGEN))
    for name in order:
        assert _status(on_either, both) == "waiting"
        assert _take(on_either, both) is None
        _done(on_either, _columns(name), f"sha256:{name}")
    assert _take(on_either, both).inputs == {"columns": "sha256:a", "more": "sha256:b"}


@pytest.mark.parametrize("is_late", [False, True])
def test_two_who_find_the_same_damage_need_one_repair(on_either, is_late):
    """Who `is_late` finds it when it has been repaired, and reads what is there now."""
    _plan(on_either, PREGEN, OTHER)
    _done(on_either, COLUMNS, "sha256:bad")
    first, second = (_take(on_either, task) for task in (PREGEN, OTHER))
    _repaired(on_either, first)
    if not is_late:
        _repaired(on_either, second)
    _done(on_either, COLUMNS, "sha256:good")
    if is_late:
        _repaired(on_either, second)
    for task in (PREGEN, OTHER):
        assert _take(on_either, task).inputs == {"columns": "sha256:good"}


def test_what_is_damaged_after_its_evaluations_deadline_is_made_again_for_the_next_one(records):
    soon = time.time() + 60
    _plan(records, COLUMNS, deadline=soon - 120)
    _done(records, COLUMNS, "sha256:bad")
    _plan(records, PREGEN, evaluation="ev_2", deadline=soon)
    lease = _take(records, PREGEN)
    _repaired(records, lease)
    assert _take(records, COLUMNS).deadline == soon


def test_a_sharded_task_is_made_again_with_those_shards_that_are_not_there(on_either):
    whole = _sharded(2)
    _plan(on_either, whole, _pregen(whole))
    for number, part in enumerate(whole.parts):
        _done(on_either, part, f"sha256:{number}")
    _done(on_either, whole, "sha256:bad")
    with on_either.transaction() as connection:
        lost = task_rows.update().where(task_rows.c.key == whole.parts[1].key)
        connection.execute(lost.values(status="canceled", result=None))
    _repaired(on_either, _take(on_either, _pregen(whole)))
    assert _take(on_either, whole) is None
    _done(on_either, whole.parts[1], "sha256:again")
    assert _take(on_either, whole).parts == ("sha256:0", "sha256:again")


def test_a_damaged_upload_cannot_be_computed_again(on_either):
    _plan(on_either, COLUMNS)
    assert not leases.recompute_input(on_either, _take(on_either, COLUMNS), "sha256:a")


def test_events_are_numbered_without_a_gap_and_the_end_of_a_task_ends_its_progress(on_either):
    """Whatever the last beat told, a second before."""
    _plan(on_either, PREGEN)
    for task in (COLUMNS, PREGEN):
        lease = _take(on_either, task)
        leases.store_progress(on_either, lease, 90, 100)
        leases.finish_attempt(
            on_either, lease, "sha256:r", {"scores": {"perplexity": 2.0}, "signature": "s"}
        )
        assert _column(on_either, "done", key=task.key) == [100]
    found = _events(on_either, "ev_1")
    assert [event.version for event in found] == list(range(2, 2 + len(found)))
    assert found[-1].kind == "end"
    told = [json.loads(event.payload) for event in found if event.kind == "task"]
    assert told[-1]["progress"] == {"done": 100, "total": 100}


@pytest.mark.long
def test_readiness_is_never_lost_between_a_plan_and_a_finish(on_either):
    """A dependent planned at the very moment when its need is done must become ready."""
    for number in range(10):
        columns = _columns(f"r{number}")
        _plan(on_either, columns, evaluation=f"ev_a{number}")
        lease = _take(on_either, columns)
        with ThreadPoolExecutor(2) as pool:
            pool.submit(leases.finish_attempt, on_either, lease, "sha256:r", {})
            pool.submit(_plan, on_either, _pregen(columns), evaluation=f"ev_b{number}").result()
        assert _status(on_either, _pregen(columns)) == "ready"


def _sharded(size, images=4):
    spans = [[start, min(start + size, images)] for start in range(0, images, size)]
    return _columns(
        parts=[Task("columns", COLUMNS.inputs, {"split": "test", "images": at}) for at in spans]
    )


def _shown(records, identity="ev_1"):
    """What an evaluation shows of its tasks, by name."""
    with records.reading() as connection:
        return {row["name"]: row for row in history.task_statuses(connection, identity)}


def test_shards_are_shown_as_the_task_that_they_make_up(records):
    whole = _sharded(2)
    _plan(records, whole, _pregen(whole))
    assert _evaluation(records) == "queued"
    first = _take(records, whole.parts[0])
    leases.store_progress(records, first, 1, 2)
    shown = _shown(records)["columns"]
    assert (shown["status"], shown["done"], shown["total"]) == ("running", 1, 4)
    assert shown["started_at"] is not None
    told = [json.loads(event.payload) for event in _events(records, "ev_1")]
    assert (told[-1]["name"], told[-1]["progress"]) == ("columns", {"done": 1, "total": 4})
    assert _evaluation(records) == "running"
    assert _shown(records)["pregen"]["status"] == "waiting"
    leases.finish_attempt(records, first, "sha256:0", {})
    _fail(records, whole.parts[1], death=True, retry=True)
    _take(records, whole.parts[1])
    shown = _shown(records)["columns"]
    assert (shown["done"], shown["attempt"]) == (2, 2)


def test_a_shards_error_is_the_tasks_and_the_other_shards_are_not_tried(records):
    whole = _sharded(1)
    _plan(records, whole, _pregen(whole))
    error = {"code": "invalid_checkpoint", "detail": "not finite"}
    _fail(records, whole.parts[1], error, death=False, retry=False)
    assert json.loads(_column(records, "error", key=whole.key)[0]) == error
    assert json.loads(_column(records, "error", key=PREGEN.key)[0])["code"] == "needs_failed"
    assert _evaluation(records) == "failed"
    assert _take(records, whole.parts[2]) is None


def test_a_task_that_is_done_is_not_run_again_and_needs_no_shards_of_another_size(on_either):
    whole = _sharded(2)
    _plan(on_either, whole, _pregen(whole))
    for part in (*whole.parts, whole, _pregen(whole)):
        _done(on_either, part)
    sent = _column(on_either, "task_key", outbox)
    other = _sharded(1)
    assert other.key == whole.key
    cached = _plan(on_either, other, _pregen(other), evaluation="ev_2")
    assert all(cached.values())
    assert _evaluation(on_either, "ev_2") == "succeeded"
    assert _column(on_either, "task_key", outbox) == sent
    assert not _column(on_either, "key", key=other.parts[0].key)


def test_a_task_that_begins_again_is_joined_from_its_new_shards(records):
    whole, other = _sharded(2), _sharded(1)
    _plan(records, whole)
    _fail(records, whole.parts[0], death=False, retry=False)
    _plan(records, other, evaluation="ev_2")
    for place in (2, 0, 3, 1):
        assert _take(records, whole) is None
        _done(records, other.parts[place], f"sha256:{place}")
    lease = _take(records, whole)
    assert lease.parts == ("sha256:0", "sha256:1", "sha256:2", "sha256:3")


def test_what_cannot_be_computed_here_takes_its_dependents_along_and_fails_nobody(on_either):
    """Shards, the task that they make up, and what waits for that; another task goes on."""
    whole = _sharded(2)
    parts = whole.parts
    other = _columns("other")
    _plan(on_either, whole, _pregen(whole), other)
    _make_unavailable(on_either, parts[0])
    for task in (parts[0], whole, _pregen(whole)):
        assert _status(on_either, task) == "unavailable"
        assert json.loads(_column(on_either, "error", key=task.key)[0]) == MISSING
    assert _status(on_either, parts[1]) == "canceled"
    _done(on_either, other)
    with on_either.reading() as connection:
        assert connection.execute(sa.select(runs.c.status)).scalar() == "succeeded"
        assert "unavailable" in connection.execute(sa.select(attempts.c.outcome)).scalars().all()


def test_a_task_that_hundreds_share_tells_some_of_them_in_each_transaction(on_either, monkeypatch):
    monkeypatch.setattr(history, "TOLD_AT_ONCE", 3)
    names = [f"ev_{number}" for number in range(8)]
    for name in names:
        _plan(on_either, COLUMNS, evaluation=name)
    lease = _take(on_either, COLUMNS)
    leases.store_progress(on_either, lease, 1, 2)
    leases.finish_attempt(on_either, lease, "sha256:r", {})
    statuses = [_evaluation(on_either, name) for name in names]
    assert (statuses.count("succeeded"), len(_column(on_either, "run_id", untold))) == (3, 5)
    assert history.update_noted_runs(on_either, most=1) == 3
    assert history.update_noted_runs(on_either) == 2
    assert [_evaluation(on_either, name) for name in names] == ["succeeded"] * 8
    for name in names:
        told = [event.kind for event in _events(on_either, name)]
        assert (told.count("end"), told[-1]) == (1, "end")
    assert history.update_noted_runs(on_either) == 0
