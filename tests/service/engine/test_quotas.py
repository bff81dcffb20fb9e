"""What teams use: seconds of tasks that are theirs, and not those that were lost."""

import time

import pytest

from service.contract.plan.tasks import Blob, Task
from service.engine import intake, leases, quotas
from service.engine.leases import Lease
from service.engine.records import Records
from service.engine.tables import task_rows

NOON = 1_764_072_000.0


def _leased(records: Records, name: str, team: str | None = "red") -> Lease:
    """A task that this team asked for, begun a minute ago."""
    task = Task("bleu", {"captions": Blob(name)}, {}, price=1.0)
    asking = records if team is None else records.of(team)
    with asking.transaction() as connection:
        intake.add_tasks(records, connection, [task], time.time() + 1000)
    lease = leases.lease_first_task(records, "metrics", "w")
    assert lease is not None
    with records.transaction() as connection:
        connection.execute(task_rows.update().values(started_at=time.time() - 60))
    return lease


def _used(records: Records, team: str = "red") -> float:
    with records.of(team).reading() as connection:
        return quotas.read_usage(connection, "device_seconds")


def test_a_task_that_is_done_or_has_failed_is_counted_to_who_asked(records: Records) -> None:
    leases.finish_attempt(records, _leased(records, "one"), "sha256:r", {})
    assert _used(records) == pytest.approx(60, abs=2)
    failed = _leased(records, "two")
    leases.fail_attempt(records, failed, {"code": "x", "detail": "y"}, death=False, retry=False)
    assert _used(records) == pytest.approx(120, abs=4)
    assert _used(records, "blue") == 0.0


def test_what_was_lost_or_handed_back_is_not_counted(records: Records) -> None:
    leases.hand_back_task(records, _leased(records, "one"))
    lease = leases.lease_first_task(records, "metrics", "w")
    assert lease is not None
    leases.lose_attempt(records, lease, {"code": "worker_lost", "detail": "x"}, killed=True)
    assert _used(records) == 0.0


def test_what_nobody_has_asked_for_is_nobodys(records: Records) -> None:
    leases.finish_attempt(records, _leased(records, "one", None), "sha256:r", {})
    with records.reading() as connection:
        assert quotas.read_usage(connection, "device_seconds") == 0.0


def test_a_day_ends_at_midnight_in_utc(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    assert quotas.count_seconds_of_day(NOON) == 12 * 3600
    for now, amount in ((NOON, 1.0), (NOON + 3600, 2.0), (NOON + 13 * 3600, 4.0)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        with records.of("red").transaction() as connection:
            quotas.add_usage(connection, "red", "upload_bytes", amount)
            used = quotas.read_usage(connection, "upload_bytes")
    assert used == 4.0
    monkeypatch.setattr(time, "time", lambda: NOON)
    with records.of("red").reading() as connection:
        assert quotas.read_usage(connection, "upload_bytes") == 3.0
    assert quotas.trim_usage(records, NOON + 50 * 24 * 3600) == 2
