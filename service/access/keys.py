"""Keys: made, listed, replaced with an overlap, revoked. The record keeps only a key's SHA-256:
nobody can send requests with what they read there.
"""

import hashlib
import json
import re
import secrets
import string
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.access import audit
from service.contract.askers import Asker, Scope
from service.contract.errors import Conflict, NotFound, Overloaded
from service.engine.records import Records, count_rows
from service.engine.tables import keys, oidc_tokens

MOST = 1000  # keys of a team that have not ended; as many of CI jobs beside them
OVERLAP_SECONDS = 24 * 3600.0  # for which a key is valid beside the one that replaced it
_USED_SECONDS = 60.0  # how exactly it is known when a key was used last


@dataclass(frozen=True)
class KeyRecord:
    """A key as it is stored. `subject`: whose job it was made for; None: it is no CI job's.
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
class NewKey:
    """A key to be made; `until`: None for ever; `subject` and `labels`: as of `Key`."""

    team: str
    scope: Scope
    name: str = ""
    until: float | None = None
    subject: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def create_key(
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
        made, text = _add(connection, NewKey(team, scope, name, until))
        audit.note_change(connection, _of(team, asker), "key.created", made.id, scope=scope)
        return made, text


def create_job_key(connection: Connection, new: NewKey, address: str) -> tuple[KeyRecord, str]:
    """A new key for a CI job, and its text, in a transaction of the engine's."""
    made, text = _add(connection, new)
    by = Asker(new.team, new.scope, None, address)
    told = {"scope": new.scope, "name": new.name, "labels": dict(new.labels)}
    audit.note_change(connection, by, "key.created", made.id, **told)
    return made, text


def read_key(records: Records, identity: str) -> KeyRecord:
    with records.reading() as connection:
        return _found(connection, identity)


def list_keys(
    records: Records,
    team: str | None = None,
    limit: int | None = None,
    after: tuple[float, str] | None = None,
) -> list[KeyRecord]:
    """All keys, or some of a team: the latest first, `after` the time and id of an earlier one."""
    query = _LATEST.limit(limit)
    if team is not None:
        query = query.where(keys.c.team == team)
    if after is not None:
        at, identity = after
        same = sa.and_(keys.c.created_at == at, keys.c.id > identity)
        query = query.where(sa.or_(keys.c.created_at < at, same))
    return [_read(row) for row in records.read(query)]


def rotate_key(
    records: Records, identity: str, overlap: float = OVERLAP_SECONDS, asker: Asker = audit.SERVICE
) -> tuple[KeyRecord, str]:
    """Replace a valid key by one of the same team, scope and duration; both overlap."""
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
        made, text = _add(connection, NewKey(old.team, old.scope, old.name, until))
        ends = now + overlap if old.expires_at is None else min(now + overlap, old.expires_at)
        changed = keys.update().where(keys.c.id == identity)
        connection.execute(changed.values(follower=made.id, expires_at=ends))
        audit.note_change(
            connection, _of(old.team, asker), "key.rotated", identity, follower=made.id
        )
        return made, text


def revoke_key(records: Records, identity: str, asker: Asker = audit.SERVICE) -> KeyRecord:
    """End a key at once. NotFound where there is none; one that was revoked stays so."""
    with records.transaction() as connection:
        old = _found(connection, identity)
        if old.revoked_at is None:
            changed = keys.update().where(keys.c.id == identity)
            connection.execute(changed.values(revoked_at=time.time()))
            audit.note_change(connection, _of(old.team, asker), "key.revoked", identity)
        return _found(connection, identity)


def note_key_use(records: Records, identity: str, now: float) -> None:
    """Note that a key was used, to a minute."""
    earlier = sa.or_(keys.c.used_at.is_(None), keys.c.used_at < now - _USED_SECONDS)
    with records.transaction() as connection:
        used = keys.update().where(keys.c.id == identity, earlier)
        connection.execute(used.values(used_at=now))


def is_note_due(key: KeyRecord, now: float) -> bool:
    """True if `note_key_use` would change something."""
    return key.used_at is None or key.used_at < now - _USED_SECONDS


def find_key_and_hash(connection: Connection, identity: str) -> tuple[KeyRecord, str] | None:
    """A key, valid or not, and the hash of its text."""
    row = connection.execute(_BY_ID, {"identity": identity}).first()
    return None if row is None else (_read(row), row.hash)


def has_keys(connection: Connection) -> bool:
    """True if a key was ever made; from then on, nobody may ask without one."""
    return connection.execute(_ANY).first() is not None


def is_valid_asker(records: Records, asker: Asker) -> bool:
    """True if an asker who was let in would be let in now."""
    with records.reading() as connection:
        if asker.key is None:
            return not has_keys(connection)
        found = find_key_and_hash(connection, asker.key)
    return found is not None and found[0].ended_by(time.time()) is None


_LATEST = sa.select(keys).order_by(keys.c.created_at.desc(), keys.c.id)
_BY_ID = sa.select(keys).where(keys.c.id == sa.bindparam("identity"))
_ANY = sa.select(keys.c.id).limit(1)


def _add(connection: Connection, new: NewKey) -> tuple[KeyRecord, str]:
    now = time.time()
    _check_room(connection, new, now)
    text = make_key_text()
    read = parse_key_text(text)
    assert read is not None
    values = {"id": read.id, "hash": read.hash, "created_at": now, "expires_at": new.until}
    given = {"team": new.team, "scope": new.scope, "name": new.name, "subject": new.subject}
    labels = json.dumps(dict(new.labels)) if new.labels else None
    made = keys.insert().values(**values, **given, labels=labels)
    return _read(connection.execute(made.returning(keys)).one()), text


def _check_room(connection: Connection, new: NewKey, now: float) -> None:
    team, is_job = new.team, new.subject is not None
    unended = (
        keys.c.subject.is_not(None) if is_job else keys.c.subject.is_(None),
        keys.c.revoked_at.is_(None),
        sa.or_(keys.c.expires_at.is_(None), keys.c.expires_at > now),
    )
    if count_rows(connection, keys, keys.c.team == team, *unended) < MOST:
        return
    if is_job:
        told = f"team {team} has keys for {MOST} jobs, as many as may be: come back later"
        raise Overloaded(told)
    raise Conflict(f"team {team} has {MOST} keys, as many as may be: revoke some")


def _found(connection: Connection, identity: str) -> KeyRecord:
    found = find_key_and_hash(connection, identity)
    if found is None:
        raise NotFound(f"no key {identity!r:.60}: `prescore keys list` shows them", name=identity)
    return found[0]


def _of(team: str, asker: Asker) -> Asker:
    """The asker, as the list of changes of this team has it."""
    return Asker(team, asker.scope, asker.key, asker.address)


def _read(row: Row[tuple[object, ...]]) -> KeyRecord:
    return build_key({name: getattr(row, name) for name in KeyRecord.__dataclass_fields__})


def build_key(values: Mapping[str, Any]) -> KeyRecord:
    """The key of the record's columns, by their names."""
    labels = json.loads(values["labels"]) if values["labels"] else {}
    return KeyRecord(**{**values, "scope": Scope(values["scope"]), "labels": labels})


KEY_PREFIX = "psk"
_ID = 12
_RANDOM, _CHECK = 43, 6  # digits to the base of 62: of 256 bits, and of 32
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_FORM = re.compile(
    rf"{KEY_PREFIX}_(?P<id>[0-9a-z]{{{_ID}}})_[0-9A-Za-z]{{{_RANDOM}}}(?P<check>[0-9A-Za-z]{{{_CHECK}}})"
)
LONGEST_KEY_TEXT = len(KEY_PREFIX) + _ID + _RANDOM + _CHECK + 2


@dataclass(frozen=True)
class KeyText:
    """A key's id, which is no secret, and the SHA-256 of the whole text."""

    id: str
    hash: str


def make_key_text() -> str:
    """The text of a new key."""
    identity = "".join(secrets.choice(string.digits + string.ascii_lowercase) for _ in range(_ID))
    random = _written(secrets.randbits(256), _RANDOM)
    return f"{KEY_PREFIX}_{identity}_{random}{_checksum(identity, random)}"


def parse_key_text(text: str) -> KeyText | None:
    """Parse the text of a key; None for a text that is no key."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    random = text.rpartition("_")[2][:_RANDOM]
    if found["check"] != _checksum(found["id"], random):
        return None
    return KeyText(found["id"], hashlib.sha256(text.encode()).hexdigest())


def _checksum(identity: str, random: str) -> str:
    return _written(zlib.crc32(f"{identity}_{random}".encode()), _CHECK)


def _written(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


ENDED_KEY_SECONDS = 7 * 24 * 3600.0  # for which keys of jobs are listed after they have ended


def delete_ended_job_keys(records: Records, now: float, most: int = 1000) -> int:
    """Delete some of what has ended; returns how many. The latest key stays: a service in which no
    key was ever made would be open.
    """
    latest = sa.select(keys.c.id).order_by(keys.c.created_at.desc(), keys.c.id).limit(1)
    ended = keys.c.subject.is_not(None), keys.c.expires_at < now - ENDED_KEY_SECONDS
    old_tokens = sa.select(oidc_tokens.c.token).where(oidc_tokens.c.expires_at < now).limit(most)
    old_keys = sa.select(keys.c.id).where(*ended).limit(most)
    with records.reading() as connection:
        spent = connection.execute(old_tokens).scalars().all()
        found = set(connection.execute(old_keys).scalars()) - set(
            connection.execute(latest).scalars()
        )
    if spent or found:
        with records.transaction() as connection:
            connection.execute(oidc_tokens.delete().where(oidc_tokens.c.token.in_(spent)))
            connection.execute(keys.delete().where(keys.c.id.in_(found)))
    return len(spent) + len(found)
