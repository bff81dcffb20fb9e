"""The works engine, on SQLite and PostgreSQL alike (trial 36)."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from service.contract import history
from service.contract import records as engine_of_works
from service.contract.records import Records
from service.contract.tables import (
    attempts,
    evaluation_works,
    evaluations,
    events,
    outbox,
    work_rows,
)
from service.contract.works import Blob, Work

SOON = 1e12


@pytest.fixture
def records(engine):
    return Records(engine)


def _columns(checkpoint="a", parts=()):
    inputs = {"checkpoint": Blob(f"sha256:{checkpoint}"), "dataset": Blob("sha256:d")}
    return Work("columns", inputs, {"split": "test"}, tuple(parts))


def _pregen(columns=None):
    return Work("pregen", {"columns": columns or _columns()}, {})


def _plan(records, *works, evaluation="ev_1", deadline=SOON):
    """Adds works and an evaluation that names them; key -> was it done."""
    everything = {step.key: step for work in works for step in work.everything()}
    with records.transaction() as connection:
        cached = records.add_works(connection, list(everything.values()), deadline)
        connection.execute(
            evaluations.insert().values(
                id=evaluation,
                request="{}",
                dataset="{}",
                dataset_name="d",
                status="queued",
                version=1,
                warnings="[]",
                deadline=deadline,
                created_at=time.time(),
            )
        )
        for position, work in enumerate(works):
            connection.execute(
                evaluation_works.insert().values(
                    evaluation_id=evaluation,
                    position=position,
                    name=work.kind,
                    work_key=work.key,
                    cached=cached[work.key],
                )
            )
        history.settle(connection, evaluation)
    return cached


def _column(records, column, table=work_rows, **where):
    query = sa.select(table.c[column])
    for name, value in where.items():
        query = query.where(table.c[name] == value)
    with records.reading() as connection:
        return connection.execute(query).scalars().all()


def _status(records, work):
    return _column(records, "status", key=work.key)[0]


def _evaluation(records, identity="ev_1"):
    return _column(records, "status", evaluations, id=identity)[0]


def test_a_work_is_ready_when_all_that_it_needs_is_done(records):
    work = _pregen()
    _plan(records, work)
    assert (_status(records, _columns()), _status(records, work)) == ("ready", "waiting")
    lease = records.lease(_columns().key, "w1")
    assert lease.inputs == {"checkpoint": "sha256:a", "dataset": "sha256:d"}
    assert records.finish(lease, "sha256:result", {})
    assert _status(records, work) == "ready"
    assert records.lease(work.key, "w1").inputs == {"columns": "sha256:result"}


def test_shards_come_back_in_their_order(records):
    parts = [Work("columns", _columns().inputs, {"images": [at, at + 1]}) for at in range(3)]
    whole = _columns(parts=parts)
    _plan(records, whole)
    for place in (2, 0, 1):
        records.finish(records.lease(parts[place].key, "w"), f"sha256:{place}", {})
    assert records.lease(whole.key, "w").parts == ("sha256:0", "sha256:1", "sha256:2")


def test_every_readiness_is_a_wake_up_in_the_outbox(records):
    _plan(records, _pregen())
    assert _column(records, "work_key", outbox) == [_columns().key]
    records.finish(records.lease(_columns().key, "w"), "sha256:r", {})
    assert _column(records, "work_key", outbox) == [_columns().key, _pregen().key]


def test_only_one_worker_gets_a_lease(records):
    _plan(records, _columns())
    with ThreadPoolExecutor(8) as pool:
        leases = list(pool.map(lambda n: records.lease(_columns().key, f"w{n}"), range(16)))
    assert len([lease for lease in leases if lease is not None]) == 1


def test_a_late_attempt_is_refused_and_the_current_one_counts(records, monkeypatch):
    """Trial 23's core: the lease ran out, another worker took over, the first one comes back."""
    monkeypatch.setattr(engine_of_works, "LEASE_SECONDS", -1.0)
    _plan(records, _columns())
    late = records.lease(_columns().key, "slow")
    assert records.expire_leases() == 1
    current = records.lease(_columns().key, "quick")
    assert current.attempt == late.attempt + 1
    assert not records.beat(late, 1, 2)
    assert not records.finish(late, "sha256:late", {})
    assert records.finish(current, "sha256:right", {})
    assert _column(records, "result", key=_columns().key) == ["sha256:right"]
    assert not records.finish(late, "sha256:late", {})
    assert _column(records, "result", key=_columns().key) == ["sha256:right"]


def test_attempts_are_kept_with_how_they_ended(records):
    _plan(records, _columns())
    lease = records.lease(_columns().key, "w1")
    records.fail(lease, {"code": "worker_lost", "detail": "killed"}, death=True, retry=True)
    records.finish(records.lease(_columns().key, "w2"), "sha256:r", {})
    assert _column(records, "outcome", attempts, work_key=_columns().key) == ["worker_lost", "done"]


def test_a_work_that_kills_two_workers_is_quarantined(records):
    """Trial 28's core."""
    _plan(records, _pregen())
    for attempt in range(2):
        lease = records.lease(_columns().key, f"w{attempt}")
        records.fail(lease, {"code": "worker_lost", "detail": "died"}, death=True, retry=True)
    assert _status(records, _columns()) == "failed"
    assert _status(records, _pregen()) == "failed"
    assert _evaluation(records) == "failed"
    assert records.lease(_columns().key, "w3") is None


def test_a_silent_worker_costs_an_attempt_and_three_are_enough(records, monkeypatch):
    monkeypatch.setattr(engine_of_works, "LEASE_SECONDS", -1.0)
    _plan(records, _columns())
    for _ in range(3):
        assert records.lease(_columns().key, "w") is not None
        records.expire_leases()
    assert _status(records, _columns()) == "failed"
    assert "worker_lost" in _column(records, "error", key=_columns().key)[0]


def test_a_failure_without_retry_is_final(records):
    _plan(records, _columns())
    lease = records.lease(_columns().key, "w")
    records.fail(lease, {"code": "timeout", "detail": "late"}, death=False, retry=False)
    assert _evaluation(records) == "failed"


def test_the_same_work_planned_again_is_not_run_again(records):
    _plan(records, _pregen())
    records.finish(records.lease(_columns().key, "w"), "sha256:r", {"scores": {}})
    records.finish(records.lease(_pregen().key, "w"), "sha256:s", {"scores": {}})
    cached = _plan(records, _pregen(), evaluation="ev_2")
    assert all(cached.values())
    assert _evaluation(records, "ev_2") == "succeeded"
    assert len(_column(records, "work_key", outbox)) == 2


def test_a_failed_work_starts_afresh_and_the_old_evaluation_stays_failed(records):
    _plan(records, _columns())
    lease = records.lease(_columns().key, "w")
    records.fail(lease, {"code": "timeout", "detail": "late"}, death=False, retry=False)
    _plan(records, _columns(), evaluation="ev_2")
    assert _status(records, _columns()) == "ready"
    records.finish(records.lease(_columns().key, "w"), "sha256:r", {})
    assert (_evaluation(records), _evaluation(records, "ev_2")) == ("failed", "succeeded")


def _cancel(records, identity):
    with records.transaction() as connection:
        records.cancel_works(connection, identity)


def test_cancel_ends_what_nobody_else_waits_for(records):
    shared, alone = _columns("shared"), _columns("alone")
    _plan(records, shared, alone)
    _plan(records, shared, evaluation="ev_2")
    _cancel(records, "ev_1")
    assert (_status(records, shared), _status(records, alone)) == ("ready", "canceled")
    assert (_evaluation(records), _evaluation(records, "ev_2")) == ("canceled", "queued")
    records.finish(records.lease(shared.key, "w"), "sha256:r", {})
    assert (_evaluation(records), _evaluation(records, "ev_2")) == ("canceled", "succeeded")


def test_a_canceled_work_refuses_its_result(records):
    _plan(records, _columns())
    lease = records.lease(_columns().key, "w")
    _cancel(records, "ev_1")
    assert not records.beat(lease, 1, 2)
    assert not records.finish(lease, "sha256:r", {})
    assert _status(records, _columns()) == "canceled"


def test_races_of_cancel_and_finish_have_one_winner(records):
    """Trial 31's core: never two final states."""
    for number in range(10):
        work, identity = _columns(f"race{number}"), f"ev_race{number}"
        _plan(records, work, evaluation=identity)
        lease = records.lease(work.key, "w")
        with ThreadPoolExecutor(2) as pool:
            finished = pool.submit(records.finish, lease, "sha256:r", {})
            pool.submit(_cancel, records, identity).result()
        ends = _column(records, "payload", events, evaluation_id=identity, kind="end")
        assert len(ends) == 1
        expected = "succeeded" if finished.result() else "canceled"
        assert _evaluation(records, identity) == expected


def test_a_worker_that_stops_hands_its_work_back(records):
    _plan(records, _columns())
    records.hand_back(records.lease(_columns().key, "w1"))
    assert _status(records, _columns()) == "ready"
    assert records.lease(_columns().key, "w2") is not None


def test_a_damaged_input_is_computed_again_and_waited_for(records):
    """Trial 17's core."""
    _plan(records, _pregen())
    records.finish(records.lease(_columns().key, "w"), "sha256:bad", {})
    lease = records.lease(_pregen().key, "w")
    assert records.recompute(lease, "sha256:bad")
    assert (_status(records, _columns()), _status(records, _pregen())) == ("ready", "waiting")
    records.finish(records.lease(_columns().key, "w"), "sha256:good", {})
    assert records.lease(_pregen().key, "w").inputs == {"columns": "sha256:good"}


def test_whoever_was_about_to_read_a_damaged_result_waits_for_it_too(records):
    other = Work("pregen", {"columns": _columns()}, {"another": True})
    _plan(records, _pregen(), other)
    records.finish(records.lease(_columns().key, "w"), "sha256:bad", {})
    assert records.recompute(records.lease(_pregen().key, "w"), "sha256:bad")
    assert records.lease(other.key, "w") is None
    records.finish(records.lease(_columns().key, "w"), "sha256:good", {})
    for work in (_pregen(), other):
        assert records.lease(work.key, "w").inputs == {"columns": "sha256:good"}


def test_a_damaged_upload_cannot_be_computed_again(records):
    _plan(records, _columns())
    assert not records.recompute(records.lease(_columns().key, "w"), "sha256:a")


def test_events_are_numbered_by_versions_without_a_gap(records):
    _plan(records, _pregen())
    for work in (_columns(), _pregen()):
        lease = records.lease(work.key, "w")
        records.beat(lease, 1, 2)
        records.finish(lease, "sha256:r", {"scores": {"perplexity": 2.0}, "signature": "s"})
    numbers = _column(records, "version", events, evaluation_id="ev_1")
    assert sorted(numbers) == list(range(2, 2 + len(numbers)))
    assert _column(records, "kind", events, evaluation_id="ev_1", version=max(numbers)) == ["end"]


def test_an_evaluation_past_its_deadline_fails_with_timeout(records):
    _plan(records, _pregen(), deadline=time.time() - 1)
    assert records.expire_deadlines() == 1
    assert _evaluation(records) == "failed"
    assert "timeout" in _column(records, "error", key=_columns().key)[0]


def test_readiness_is_never_lost_between_a_plan_and_a_finish(records):
    """A dependent planned at the very moment when its need is done must become ready."""
    for number in range(10):
        columns = _columns(f"r{number}")
        _plan(records, columns, evaluation=f"ev_a{number}")
        lease = records.lease(columns.key, "w")
        with ThreadPoolExecutor(2) as pool:
            pool.submit(records.finish, lease, "sha256:r", {})
            pool.submit(_plan, records, _pregen(columns), evaluation=f"ev_b{number}").result()
        assert _status(records, _pregen(columns)) == "ready"
