"""Resumable uploads: their rows, which never count more bytes than are durable.

One request at a time writes to an upload: it takes it, which tells the one before to leave.
"""

import json
import re
import secrets
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.uploads import Upload
from service.contract import limits
from service.contract.api.field_types import moment
from service.contract.errors import BodyTooLarge, NotFound, RequestRefused, TooManyUploads
from service.contract.wording import count_noun
from service.engine.records import Records
from service.engine.tables import uploads
from service.engine.tenancy import find_owner

_ID = re.compile(r"up_[A-Za-z0-9_-]{1,37}")
_LONGEST_SECONDS = 7 * limits.UNFINISHED_SECONDS  # from its beginning, however often bytes come
_ACTIVE_SECONDS = 15.0  # since bytes were noted, which is every few seconds while they come


@dataclass(frozen=True)
class UploadPurpose:
    """The purpose of an upload: a checkpoint, columns, or a dataset's version. The digest may
    be unknown beforehand.
    """

    kind: str
    digest: str | None
    name: str | None


@dataclass(frozen=True)
class UnfinishedUpload:
    """An upload as the record has it."""

    id: str
    team: str
    purpose: UploadPurpose
    told: str
    length: int
    received: int
    judged: bool
    complete: bool
    writer: str | None
    staging: str | None
    staged: int
    location: str | None
    problem: str | None
    created_at: float
    touched_at: float
    expires_at: float

    @property
    def offset(self) -> int:
        """The number of bytes that have come, here or in the store."""
        return self.length if self.complete else self.received

    @property
    def has_ended(self) -> bool:
        return self.location is not None or self.problem is not None

    @property
    def is_in_the_store(self) -> bool:
        """True if its bytes are in the store alone, where the client has sent them."""
        return self.staging is not None and self.received != self.length

    @property
    def is_refused(self) -> bool:
        return self.problem is not None


def create_upload(
    records: Records, purpose: UploadPurpose, length: int, told: str
) -> UnfinishedUpload:
    """Begin an upload; `told`: its Upload-Metadata. TooManyUploads: the team has too much."""
    if length > limits.UPLOAD_BYTES:
        raise BodyTooLarge(f"expected at most {limits.UPLOAD_BYTES} bytes, found {length}")
    now = time.time()
    values = {
        "id": f"up_{secrets.token_urlsafe(24)}",
        "kind": purpose.kind,
        "digest": purpose.digest,
        "name": purpose.name,
        "told": told,
        "length": length,
        "received": 0,
        "judged": False,
        "complete": False,
        **_touched(now, now),
        "created_at": now,
    }
    with records.transaction() as connection:
        _check_room(connection, length)
        new = uploads.insert().values(team=find_owner(connection), **values)
        row = connection.execute(new.returning(uploads)).one()
    return _read(row)


def _check_room(connection: Connection, length: int) -> None:
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(uploads.c.length), 0))
    count, size = connection.execute(query.where(*_OPEN)).one()
    if count >= limits.UNFINISHED or size + length > limits.UNFINISHED_BYTES:
        raise TooManyUploads(
            f"Your team has {count_noun(count, 'unfinished upload')} of {size} bytes; its limit is "
            f"{limits.UNFINISHED} of {limits.UNFINISHED_BYTES} bytes. Finish or delete some "
            "(GET /v1/uploads)."
        )


_OPEN = uploads.c.location.is_(None), uploads.c.problem.is_(None)


def find_upload(records: Records, identity: str) -> UnfinishedUpload:
    if not _ID.fullmatch(identity):  # PostgreSQL refuses a NUL even in a comparison
        raise upload_not_found(identity)
    rows = records.read(sa.select(uploads).where(uploads.c.id == identity))
    if not rows or rows[0].expires_at < time.time():
        raise upload_not_found(identity)
    return _read(rows[0])


def upload_not_found(identity: str) -> NotFound:
    return NotFound(
        f"no upload {identity!r:.100}: it was deleted, or nothing came for a day; begin a new one "
        "with POST /v1/uploads",
        name=identity,
    )


def list_unfinished(records: Records, digest: str | None) -> Sequence[UnfinishedUpload]:
    """A team's unfinished uploads, the latest first."""
    query = sa.select(uploads).where(uploads.c.expires_at >= time.time(), *_OPEN)
    if digest is not None:
        query = query.where(uploads.c.digest == digest)
    return [_read(row) for row in records.read(query.order_by(uploads.c.created_at.desc()))]


def take_upload(records: Records, identity: str, writer: str) -> bool:
    """Say that this writer has it from now on; whether the upload is still there."""
    return _changed(records, identity, writer=writer)


def note_received(
    records: Records, upload: UnfinishedUpload, received: int, *, judged: bool
) -> bool:
    """Note what is durable; whether the upload is still there. Who calls has locked the file."""
    touched = {} if received == upload.received else _touched(time.time(), upload.created_at)
    return _changed(records, upload.id, received=received, judged=judged, **touched)


def leave_upload(records: Records, identity: str, writer: str) -> None:
    """Say that this writer has left, unless another one has taken the upload meanwhile."""
    same = uploads.c.id == identity, uploads.c.writer == writer
    with records.transaction() as connection:
        connection.execute(uploads.update().where(*same).values(writer=None))


def note_staging(records: Records, identity: str, staging: str) -> bool:
    """Store an upload's id in the store; False if there is one already, or no upload."""
    free = uploads.c.id == identity, uploads.c.staging.is_(None)
    change = uploads.update().where(*free).values(staging=staging)
    with records.transaction() as connection:
        return connection.execute(change.returning(uploads.c.id)).first() is not None


def note_staged_bytes(records: Records, upload: UnfinishedUpload, size: int) -> bool:
    """Note how many bytes the store has; whether the upload is still there."""
    if size == upload.staged:
        return True
    return _changed(records, upload.id, staged=size, **_touched(time.time(), upload.created_at))


def note_complete(records: Records, identity: str) -> None:
    _changed(records, identity, complete=True)


def note_location(records: Records, identity: str, location: str) -> None:
    _changed(records, identity, location=location, received=uploads.c.length)


def note_refusal(records: Records, identity: str, status: int, error: RequestRefused) -> None:
    problem = {"status": status, "code": error.code, "detail": error.detail}
    _changed(records, identity, problem=json.dumps(problem))


def find_writers(records: Records, identities: Collection[str]) -> dict[str, str | None]:
    """The writer of each of these uploads; those that were deleted are left out."""
    query = sa.select(uploads.c.id, uploads.c.writer).where(uploads.c.id.in_(list(identities)))
    return {row.id: row.writer for row in records.read(query)}


def delete_upload(records: Records, identity: str) -> None:
    with records.transaction() as connection:
        connection.execute(uploads.delete().where(uploads.c.id == identity))


def forget_expired_uploads(records: Records, now: float) -> Sequence[tuple[str, str | None]]:
    """Delete rows of expired uploads; their ids, and those of their multipart uploads."""
    old = uploads.c.expires_at < now
    if not records.read(sa.select(uploads.c.id).where(old).limit(1)):
        return []
    with records.transaction() as connection:
        deleted = uploads.delete().where(old).returning(uploads.c.id, uploads.c.staging)
        return [(row.id, row.staging) for row in connection.execute(deleted)]


def format_upload(upload: UnfinishedUpload) -> Upload:
    problem = None if upload.problem is None else json.loads(upload.problem)
    is_active = upload.writer is not None and upload.touched_at > time.time() - _ACTIVE_SECONDS
    return Upload.model_validate(
        {
            "id": upload.id,
            **vars(upload.purpose),
            "length": upload.length,
            "offset": upload.received,
            "staged": upload.staged,
            "complete": upload.complete,
            "active": is_active and not upload.complete,
            "location": upload.location,
            "problem": problem,
            "created_at": moment(upload.created_at),
            "expires_at": moment(upload.expires_at),
        }
    )


def _changed(records: Records, identity: str, **values: Any) -> bool:
    change = uploads.update().where(uploads.c.id == identity).values(**values)
    with records.transaction() as connection:
        return connection.execute(change.returning(uploads.c.id)).first() is not None


def _touched(now: float, created_at: float) -> dict[str, float]:
    latest = created_at + _LONGEST_SECONDS
    return {"touched_at": now, "expires_at": min(now + limits.UNFINISHED_SECONDS, latest)}


def _read(row: Row[Any]) -> UnfinishedUpload:
    values = dict(zip(row._fields, row, strict=True))
    purpose = UploadPurpose(values.pop("kind"), values.pop("digest"), values.pop("name"))
    return UnfinishedUpload(purpose=purpose, **values)
