"""Completion of uploads whose bytes are all there: they are judged and stored like those of PUT.

It is done in a task of its own, which goes on when the client leaves: nobody would ask for it
again. Where the service ends meanwhile, the next request for the upload begins it anew.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from threading import Event

from service.contract.askers import Asker
from service.contract.errors import (
    BlobUnreadable,
    DiskFull,
    Overloaded,
    RequestRefused,
    ServiceUnavailable,
    StoreUnavailable,
    UploadComplete,
)
from service.engine.blobs import BlobUpload
from service.http import problems, uploads
from service.http.dependencies import AppParts
from service.http.loop_limits import LoopLimit
from service.http.routers import checkpoints
from service.http.uploads import DigestFiles, EarlyQuestion, check_digest
from service.stored import judges, resumable_uploads, staged_uploads
from service.stored.judges import Facts
from service.stored.resumable_uploads import UnfinishedUpload, UploadPurpose
from service.stored.upload_turns import UploadTurn

_BY_DIGEST: Mapping[str, tuple[str, DigestFiles]] = {
    "checkpoint": ("/v1/checkpoints", checkpoints.CHECKPOINT_FILES),
    "columns": ("/v1/columns", checkpoints.COLUMNS_FILES),
}
_FETCHES = LoopLimit(2)  # from the store at a time: more would delay other requests
_PASSING = ServiceUnavailable, DiskFull, Overloaded  # a later attempt may succeed


def find_early_question(purpose: UploadPurpose) -> EarlyQuestion:
    if purpose.kind == "dataset":
        return uploads.DATASET_BEGINNING
    return _BY_DIGEST[purpose.kind][1].early


def is_final(error: Exception) -> bool:
    """Tell whether the same bytes would be refused again."""
    return isinstance(error, RequestRefused) and not isinstance(error, _PASSING)


async def finish_upload(service: AppParts, upload: UnfinishedUpload, asker: Asker) -> None:
    """Store what a complete upload becomes; raises why it was refused."""
    await service.endings.ended(upload.id, partial(_finish, service, upload, asker))


async def refuse_upload(
    service: AppParts, upload: UnfinishedUpload, file: BlobUpload, error: RequestRefused
) -> None:
    """Note why an upload was refused, and free its bytes."""
    status = problems.find_status(type(error))
    await asyncio.to_thread(
        resumable_uploads.note_refusal, service.records, upload.id, status, error
    )
    file.delete()
    await forget_staged(service, upload)


async def _finish(service: AppParts, upload: UnfinishedUpload, asker: Asker, nobody: Event) -> None:
    if not upload.is_in_the_store:
        await asyncio.to_thread(_put_back, service, upload)
    async with service.turns.taken(service, upload) as turn:
        if upload.is_in_the_store and turn.upload.has_ended:  # by another process
            raise UploadComplete("the upload has ended meanwhile; see what it became")
        try:
            if turn.upload.is_in_the_store:
                await _fetch(service, turn)
            async with service.turns.writing:
                await asyncio.to_thread(turn.file.hash)
            location = await _store(service, turn, asker, nobody)
        except RequestRefused as error:
            if is_final(error):
                await refuse_upload(service, upload, turn.file, error)
            raise
        await asyncio.to_thread(
            resumable_uploads.note_location, service.records, upload.id, location
        )
        turn.file.delete()  # if the object was there already
        service.turns.forget_hash(upload.id)
        await forget_staged(service, turn.upload)


async def _fetch(service: AppParts, turn: UploadTurn) -> None:
    """Write what the client has sent to the store to the file. It counts as received only once it
    is an object: until then it can be fetched again.
    """
    async with _FETCHES:
        turn.file.begin(0)
        chunks = staged_uploads.stream_staged_file(service, turn.upload)
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            async with service.turns.writing:
                await asyncio.to_thread(turn.file.write, chunk)
    if turn.file.size != turn.upload.length:
        raise resumable_uploads.upload_not_found(turn.upload.id)


async def forget_staged(service: AppParts, upload: UnfinishedUpload) -> None:
    with suppress(StoreUnavailable):  # it is deleted when the upload is
        await asyncio.to_thread(staged_uploads.forget_staged_file, service, upload)


async def _store(service: AppParts, turn: UploadTurn, asker: Asker, nobody: Event) -> str:
    """Store the upload's object; return the URL of the checkpoint, columns or dataset."""

    async def ask(question: str, /, **asked: object) -> Facts:
        answer = judges.get_judges().ask(question, nobody.is_set, **asked)
        return await asyncio.wrap_future(answer)

    purpose, file = turn.upload.purpose, turn.file
    if purpose.kind == "dataset":
        assert purpose.name is not None
        if purpose.digest is not None:
            check_digest(file.digest, purpose.digest)
        dataset, _ = await uploads.store_dataset(service, purpose.name, file, ask)
        return f"/v1/datasets/{dataset.name}@{dataset.version}"
    folder, files = _BY_DIGEST[purpose.kind]
    digest = purpose.digest or file.digest
    await files.keep(service, digest, file, ask, asker)
    return f"{folder}/{digest}"


def _put_back(service: AppParts, upload: UnfinishedUpload) -> None:
    """Restore an upload's file from its object after a crash between storing and noting that."""
    path, digest = service.blobs.unended(upload.id), upload.purpose.digest
    if digest is None or path.exists() or not service.blobs.has(digest):
        return
    with suppress(BlobUnreadable, OSError):
        os.link(service.blobs.path(digest), path)
