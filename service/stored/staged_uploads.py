"""Staged uploads: clients send their bytes to the object store themselves, in parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.contract.errors import Conflict, NotFound
from service.engine.service_parts import ServiceParts
from service.stored import resumable_uploads
from service.stored.resumable_uploads import UnfinishedUpload

if TYPE_CHECKING:
    from service.engine.blobs.multipart import MultipartStaging

PART_BYTES = 1 << 24  # the last part may have fewer; a store takes 10,000, of 5 MB or more
URL_SECONDS = 3600


@dataclass(frozen=True)
class FilePart:
    """One of the store's multipart upload, by its place in the file."""

    number: int
    offset: int
    bytes: int


def cut_into_parts(length: int) -> Iterator[FilePart]:
    """A file of so many bytes in parts."""
    for offset in range(0, length, PART_BYTES):
        yield FilePart(offset // PART_BYTES + 1, offset, min(PART_BYTES, length - offset))


def find_missing_parts(parts: ServiceParts, upload: UnfinishedUpload) -> list[FilePart]:
    """Missing parts; if there are none, makes one file of them. NotFound: the store lost them."""
    store = _offered(parts)
    begun = upload.staging or _begun(parts, store, upload.id)
    held = store.held(upload.id, begun)
    if held is not None:
        found = [
            part for part in cut_into_parts(upload.length) if held.get(part.number) != part.bytes
        ]
        if found:
            return found
        store.assemble(upload.id, begun)
    # Another request may have completed it meanwhile: what is stored is there no more.
    if (
        store.size(upload.id) != upload.length
        and not resumable_uploads.find_upload(parts.records, upload.id).complete
    ):
        raise _lost(parts, upload.id)
    return []


def sign_part_url(parts: ServiceParts, upload: UnfinishedUpload, part: FilePart) -> str:
    """The URL to which this part is put, within `URL_SECONDS`."""
    assert upload.staging is not None
    return _offered(parts).url(upload.id, upload.staging, part.number, part.bytes, URL_SECONDS)


def stream_staged_file(parts: ServiceParts, upload: UnfinishedUpload) -> Iterator[bytes]:
    """The file; NotFound where the store has lost it."""
    try:
        yield from _offered(parts).stream(upload.id)
    except FileNotFoundError:
        raise _lost(parts, upload.id) from None


def forget_staged_file(parts: ServiceParts, upload: UnfinishedUpload) -> None:
    """Delete what the store has of it."""
    if upload.staging is not None and parts.blobs.staging is not None:
        parts.blobs.staging.forget(upload.id, upload.staging)


def _offered(parts: ServiceParts) -> "MultipartStaging":
    if parts.blobs.staging is None:
        raise Conflict(
            "clients send no parts to a store here: the operator has not set "
            "PRESCORE_BLOB_PUBLIC_URL; append with PATCH"
        )
    return parts.blobs.staging


def _begun(parts: ServiceParts, store: "MultipartStaging", identity: str) -> str:
    """The id of its multipart upload; of two requests that begin one, the first one's."""
    new = store.begin(identity)
    if resumable_uploads.note_staging(parts.records, identity, new):
        return new
    store.forget(identity, new)
    found = resumable_uploads.find_upload(parts.records, identity).staging
    assert found is not None
    return found


def _lost(parts: ServiceParts, identity: str) -> NotFound:
    resumable_uploads.delete_upload(parts.records, identity)
    return resumable_uploads.upload_not_found(identity)
