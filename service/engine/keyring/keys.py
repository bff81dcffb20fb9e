"""Keys: made, listed, replaced with an overlap, revoked. Of a key its SHA-256 is kept: whoever
reads the record cannot ask with what is in it.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract.askers import Asker, Scope
from service.contract.errors import Conflict, NotFound, Overloaded
from service.engine.kept import audit
from service.engine.keyring import texts
from service.engine.records import Records
from service.engine.tables import keys

MOST = 1000  # keys of a team that have not ended; as many of CI jobs beside them
OVERLAP_SECONDS = 24 * 3600.0  # for which a key is valid beside the one that replaced it
_USED_SECONDS = 60.0  # how exactly it is known when a key was used last


@dataclass(frozen=True)
class KeyRecord:
    """What is known of a key. `subject`: whose job it was made for; None: it is no CI job's.
    `labels`: what is submitted with it gets them.
    """

    id: str
    team: str
    scope: Scope
    name: str
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    used_at: float | None
    follower: str | None
    subject: str | None
    labels: Mapping[str, str] = field(hash=False)

    def ended_by(self, now: float) -> str | None:
        """Why it is not valid any more; None while it is."""
        if self.revoked_at is not None:
            return "was revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "has expired"
        return None


@dataclass(frozen=True)
class New:
    """A key to be made; `until`: None for ever; `subject` and `labels`: as of `Key`."""

    team: str
    scope: Scope
    name: str = ""
    until: float | None = None
    subject: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def make(
    records: Records,
    team: str,
    scope: Scope,
    name: str = "",
    seconds: float | None = None,
    asker: Asker = audit.SERVICE,
) -> tuple[KeyRecord, str]:
    """A new key, valid for so many seconds, and its text, which nobody can see again."""
    until = None if seconds is None else time.time() + seconds
    with records.transaction() as connection:
        made, text = _add(connection, New(team, scope, name, until))
        audit.note(connection, _of(team, asker), "key.created", made.id, scope=scope)
        return made, text


def make_for_job(connection: Connection, new: New, address: str) -> tuple[KeyRecord, str]:
    """A new key for a CI job, and its text, in a transaction of the engine's."""
    made, text = _add(connection, new)
    by = Asker(new.team, new.scope, None, address)
    told = {"scope": new.scope, "name": new.name, "labels": dict(new.labels)}
    audit.note(connection, by, "key.created", made.id, **told)
    return made, text


def get(records: Records, identity: str) -> KeyRecord:
    with records.reading() as connection:
        return _found(connection, identity)


def every(records: Records, team: str | None = None) -> list[KeyRecord]:
    """All keys, or those of a team: the latest first."""
    query = _LATEST if team is None else _LATEST.where(keys.c.team == team)
    with records.reading() as connection:
        return [_read(row) for row in connection.execute(query)]


def page(
    records: Records, team: str, limit: int, after: tuple[float, str] | None = None
) -> list[KeyRecord]:
    """Some keys of a team, the latest first, `after` the time and id of an earlier one."""
    query = _LATEST.where(keys.c.team == team)
    if after is not None:
        at, identity = after
        same = sa.and_(keys.c.created_at == at, keys.c.id > identity)
        query = query.where(sa.or_(keys.c.created_at < at, same))
    with records.reading() as connection:
        return [_read(row) for row in connection.execute(query.limit(limit))]


def rotate(
    records: Records, identity: str, overlap: float = OVERLAP_SECONDS, asker: Asker = audit.SERVICE
) -> tuple[KeyRecord, str]:
    """A key of the same team, scope and duration in the place of one, which is valid for `overlap`
    seconds more. Conflict where that one is not valid.
    """
    now = time.time()
    with records.transaction() as connection:
        old = _found(connection, identity)
        if old.subject is not None:
            raise Conflict(f"key {identity} is a CI job's: each job gets its own")
        if (why := old.ended_by(now)) is not None:
            raise Conflict(f"key {identity} {why}: make a new one with `prescore keys create`")
        if old.follower is not None:
            raise Conflict(f"key {identity} was replaced by {old.follower} before: rotate that one")
        until = None if old.expires_at is None else now + old.expires_at - old.created_at
        made, text = _add(connection, New(old.team, old.scope, old.name, until))
        ends = now + overlap if old.expires_at is None else min(now + overlap, old.expires_at)
        changed = keys.update().where(keys.c.id == identity)
        connection.execute(changed.values(follower=made.id, expires_at=ends))
        audit.note(connection, _of(old.team, asker), "key.rotated", identity, follower=made.id)
        return made, text


def revoke(records: Records, identity: str, asker: Asker = audit.SERVICE) -> KeyRecord:
    """End a key at once. NotFound where there is none; one that was revoked stays so."""
    with records.transaction() as connection:
        old = _found(connection, identity)
        if old.revoked_at is None:
            changed = keys.update().where(keys.c.id == identity)
            connection.execute(changed.values(revoked_at=time.time()))
            audit.note(connection, _of(old.team, asker), "key.revoked", identity)
        return _found(connection, identity)


def note_use(records: Records, identity: str, now: float) -> None:
    """Note that a key was used, to a minute."""
    earlier = sa.or_(keys.c.used_at.is_(None), keys.c.used_at < now - _USED_SECONDS)
    with records.transaction() as connection:
        used = keys.update().where(keys.c.id == identity, earlier)
        connection.execute(used.values(used_at=now))


def is_note_due(key: KeyRecord, now: float) -> bool:
    """Whether `note_use` would change something."""
    return key.used_at is None or key.used_at < now - _USED_SECONDS


def with_hash(connection: Connection, identity: str) -> tuple[KeyRecord, str] | None:
    """A key, valid or not, and the hash of its text."""
    row = connection.execute(_BY_ID, {"identity": identity}).first()
    return None if row is None else (_read(row), row.hash)


def are_there(connection: Connection) -> bool:
    """Whether a key was ever made; from then on, nobody may ask without one."""
    return connection.execute(_ANY).first() is not None


def is_valid(records: Records, asker: Asker) -> bool:
    """Whether one who was let in would be let in now."""
    with records.reading() as connection:
        if asker.key is None:
            return not are_there(connection)
        found = with_hash(connection, asker.key)
    return found is not None and found[0].ended_by(time.time()) is None


_LATEST = sa.select(keys).order_by(keys.c.created_at.desc(), keys.c.id)
_BY_ID = sa.select(keys).where(keys.c.id == sa.bindparam("identity"))
_ANY = sa.select(keys.c.id).limit(1)


def _add(connection: Connection, new: New) -> tuple[KeyRecord, str]:
    now = time.time()
    _check_room(connection, new, now)
    text = texts.make()
    read = texts.read(text)
    assert read is not None
    values = {"id": read.id, "hash": read.hash, "created_at": now, "expires_at": new.until}
    given = {"team": new.team, "scope": new.scope, "name": new.name, "subject": new.subject}
    labels = json.dumps(dict(new.labels)) if new.labels else None
    made = keys.insert().values(**values, **given, labels=labels)
    return _read(connection.execute(made.returning(keys)).one()), text


def _check_room(connection: Connection, new: New, now: float) -> None:
    team, is_job = new.team, new.subject is not None
    unended = (
        keys.c.subject.is_not(None) if is_job else keys.c.subject.is_(None),
        keys.c.revoked_at.is_(None),
        sa.or_(keys.c.expires_at.is_(None), keys.c.expires_at > now),
    )
    count = sa.select(sa.func.count()).select_from(keys).where(keys.c.team == team, *unended)
    if connection.execute(count).scalar_one() < MOST:
        return
    if is_job:
        raise Overloaded(
            f"team {team} has keys for {MOST} jobs, as many as may be: come back later"
        )
    raise Conflict(f"team {team} has {MOST} keys, as many as may be: revoke some")


def _found(connection: Connection, identity: str) -> KeyRecord:
    found = with_hash(connection, identity)
    if found is None:
        raise NotFound(f"no key {identity!r:.60}: `prescore keys list` shows them", name=identity)
    return found[0]


def _of(team: str, asker: Asker) -> Asker:
    """Who asked, as the list of changes of this team has it."""
    return Asker(team, asker.scope, asker.key, asker.address)


def _read(row: Row[tuple[object, ...]]) -> KeyRecord:
    return of_values({name: getattr(row, name) for name in KeyRecord.__dataclass_fields__})


def of_values(values: Mapping[str, Any]) -> KeyRecord:
    """The key of the record's columns, by their names."""
    labels = json.loads(values["labels"]) if values["labels"] else {}
    return KeyRecord(**{**values, "scope": Scope(values["scope"]), "labels": labels})
