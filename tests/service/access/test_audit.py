"""The list of changes: written with the change, read in pages, trimmed by age."""

import contextlib

import sqlalchemy as sa

from service.access import audit
from service.access.audit import AuditQuery
from service.contract.askers import EVERYBODY, Asker
from service.engine.tables import audit as rows


def _noted(records, many, **by):
    with records.transaction() as connection:
        for number in range(many):
            asker = Asker(address="::1", **by)
            audit.note_change(connection, asker, "run.changed", f"ev_{number}", note="seen")


def _read(records, **asked):
    found, before = [], None
    while True:
        page, before = audit.read_changes(
            records.of("local"), AuditQuery(limit=3, before=before, **asked)
        )
        found += [row.object for row in page]
        if before is None:
            return found


def test_pages_have_every_change_of_a_team_once_and_the_latest_first(on_either):
    _noted(on_either, 7)
    _noted(on_either, 3, team="others")
    with contextlib.suppress(ZeroDivisionError), on_either.transaction() as connection:
        audit.note_change(connection, EVERYBODY, "run.deleted", "ev_1")
        raise ZeroDivisionError  # what is rolled back is not noted
    assert _read(on_either) == [f"ev_{number}" for number in reversed(range(7))]


def test_changes_are_found_by_what_was_done_and_by_what_was_changed(on_either):
    _noted(on_either, 2)
    with on_either.transaction() as connection:
        audit.note_change(connection, EVERYBODY, "run.deleted", "ev_1")
    assert _read(on_either, object="ev_1") == ["ev_1", "ev_1"]
    assert _read(on_either, action="run.deleted") == ["ev_1"]
    assert _read(on_either, action="run.deleted", object="ev_0") == []


def test_old_changes_go_a_bounded_number_at_a_time(on_either):
    _noted(on_either, 5)
    with on_either.transaction() as connection:
        connection.execute(rows.update().where(rows.c.object != "ev_4").values(at=10.0))
    assert [audit.trim_changes(on_either, before=11.0, most=3) for _ in range(3)] == [3, 1, 0]
    assert _read(on_either) == ["ev_4"]


def test_what_is_noted_has_a_bound(on_either):
    with on_either.transaction() as connection:
        audit.note_change(connection, EVERYBODY, "run.changed", "x" * 1000, labels="y" * 100_000)
        row = connection.execute(sa.select(rows)).one()
    assert len(row.object) <= 300
    assert len(row.detail) <= 4000
