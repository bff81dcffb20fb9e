"""Keys in the record: valid until they expire or are revoked, replaced with an overlap."""

import time

import pytest
import sqlalchemy as sa

from service.access import keys
from service.contract.askers import Scope
from service.contract.errors import Conflict, NotFound
from service.engine.records import Records
from service.engine.tables import audit
from service.engine.tables import keys as rows


def _ended(records: Records, identity: str, later: float = 0.0) -> str | None:
    return keys.read_key(records, identity).ended_by(time.time() + later)


def test_the_record_has_the_hash_of_a_key_and_nothing_of_its_text(records: Records) -> None:
    made, text = keys.create_key(records, "red", Scope.SUBMIT, "ci")
    with records.reading() as connection:
        (row,) = connection.execute(sa.select(rows)).all()
        noted = [each.action for each in connection.execute(sa.select(audit))]
    read = keys.parse_key_text(text)
    assert read is not None
    assert (row.id, row.hash) == (made.id, read.hash)
    secret = text.split("_")[2]
    assert not [value for value in row if isinstance(value, str) and secret[:6] in value]
    assert noted == ["key.created"]


def test_a_key_ends_when_it_expires_or_is_revoked(records: Records) -> None:
    made, _ = keys.create_key(records, "red", Scope.READ, seconds=60)
    assert (_ended(records, made.id, 59), _ended(records, made.id, 61)) == (None, "has expired")
    first = keys.revoke_key(records, made.id)
    assert _ended(records, made.id) == "was revoked"
    assert keys.revoke_key(records, made.id) == first


def test_a_key_that_is_replaced_is_valid_for_the_overlap(records: Records) -> None:
    old, before = keys.create_key(records, "red", Scope.PUBLISH, "nightly", 1000)
    new, after = keys.rotate_key(records, old.id, 100)
    assert before != after
    assert (new.team, new.scope, new.name) == ("red", Scope.PUBLISH, "nightly")
    assert new.expires_at == pytest.approx(time.time() + 1000, abs=5)
    assert keys.read_key(records, old.id).follower == new.id
    assert _ended(records, old.id, 90) is None
    assert _ended(records, old.id, 110) == "has expired"
    assert _ended(records, new.id, 110) is None
    keys.rotate_key(records, new.id, 10_000)
    assert _ended(records, new.id, 1001) == "has expired"  # no later than it would have


def test_what_is_not_valid_or_was_replaced_is_not_replaced(records: Records) -> None:
    old, _ = keys.create_key(records, "red", Scope.READ)
    new, _ = keys.rotate_key(records, old.id, 100)
    with pytest.raises(Conflict, match=new.id):
        keys.rotate_key(records, old.id)
    keys.revoke_key(records, new.id)
    with pytest.raises(Conflict, match="was revoked"):
        keys.rotate_key(records, new.id)
    with pytest.raises(NotFound):
        keys.rotate_key(records, "nosuchkey000")


def test_a_use_is_noted_to_a_minute(records: Records) -> None:
    made, _ = keys.create_key(records, "red", Scope.READ)
    now = time.time()
    assert keys.is_note_due(made, now)
    for later, kept in ((0, 0), (30, 0), (90, 90)):
        keys.note_key_use(records, made.id, now + later)
        assert keys.read_key(records, made.id).used_at == now + kept


def test_a_team_has_no_more_keys_than_it_may(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MOST", 2)
    first, _ = keys.create_key(records, "red", Scope.READ)
    keys.create_key(records, "red", Scope.READ)
    with pytest.raises(Conflict, match="team red has 2 keys"):
        keys.create_key(records, "red", Scope.READ)
    blue, _ = keys.create_key(records, "blue", Scope.READ)
    assert [key.id for key in keys.list_keys(records, "blue")] == [blue.id]
    keys.revoke_key(records, first.id)
    keys.create_key(records, "red", Scope.READ)
