"""Uploads whose bytes the client sends to the object store itself: which parts are still to come,
where they are sent, and the whole file once it is there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.contract.errors import Conflict, NotFound
from service.engine.parts import Parts
from service.stored.unfinished import rows
from service.stored.unfinished.rows import Unfinished

if TYPE_CHECKING:
    from service.engine.blobs.staged import Staging

PART_BYTES = 1 << 24  # the last part may have fewer; a store takes 10,000, of 5 MB or more
URL_SECONDS = 3600


@dataclass(frozen=True)
class Part:
    """One of the store's multipart upload, by its place in the file."""

    number: int
    offset: int
    bytes: int


def cut(length: int) -> Iterator[Part]:
    """A file of so many bytes in parts."""
    for offset in range(0, length, PART_BYTES):
        yield Part(offset // PART_BYTES + 1, offset, min(PART_BYTES, length - offset))


def missing(parts: Parts, upload: Unfinished) -> list[Part]:
    """The parts that the store does not have; where it has all, it makes one file of them. NotFound
    where it has lost them.
    """
    store = _offered(parts)
    begun = upload.staging or _begun(parts, store, upload.id)
    held = store.held(upload.id, begun)
    if held is not None:
        found = [part for part in cut(upload.length) if held.get(part.number) != part.bytes]
        if found:
            return found
        store.assemble(upload.id, begun)
    # Another request may have completed it meanwhile: what is stored is there no more.
    if store.size(upload.id) != upload.length and not rows.find(parts.records, upload.id).complete:
        raise _lost(parts, upload.id)
    return []


def url(parts: Parts, upload: Unfinished, part: Part) -> str:
    """Where this part is put, within `URL_SECONDS`."""
    assert upload.staging is not None
    return _offered(parts).url(upload.id, upload.staging, part.number, part.bytes, URL_SECONDS)


def whole(parts: Parts, upload: Unfinished) -> Iterator[bytes]:
    """The file; NotFound where the store has lost it."""
    try:
        yield from _offered(parts).stream(upload.id)
    except FileNotFoundError:
        raise _lost(parts, upload.id) from None


def forget(parts: Parts, upload: Unfinished) -> None:
    """Delete what the store has of it."""
    if upload.staging is not None and parts.blobs.staging is not None:
        parts.blobs.staging.forget(upload.id, upload.staging)


def _offered(parts: Parts) -> "Staging":
    if parts.blobs.staging is None:
        raise Conflict(
            "clients send no parts to a store here: the operator has not set "
            "PRESCORE_BLOB_PUBLIC_URL; append with PATCH"
        )
    return parts.blobs.staging


def _begun(parts: Parts, store: "Staging", identity: str) -> str:
    """The id of its multipart upload; of two requests that begin one, the first one's."""
    new = store.begin(identity)
    if rows.stage(parts.records, identity, new):
        return new
    store.forget(identity, new)
    found = rows.find(parts.records, identity).staging
    assert found is not None
    return found


def _lost(parts: Parts, identity: str) -> NotFound:
    rows.delete(parts.records, identity)
    return rows.missing(identity)
