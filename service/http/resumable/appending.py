"""Appends the body of a request to an upload, and looks at uploads that others append to."""

import asyncio
import contextlib

from fastapi import Request

from service.contract.asking import Scope
from service.contract.errors import (
    OffsetMismatch,
    PrescoreError,
    RequestRefused,
    TooLarge,
    UploadComplete,
    UploadRefused,
)
from service.http.dependencies import Running, caller_of
from service.http.entrance.access import require
from service.http.resumable import fields, finishing
from service.http.resumable.finishing import Outcome
from service.http.resumable.receiving import Receiving
from service.stored.unfinished import rows
from service.stored.unfinished.rows import Purpose, Unfinished

_SOON = 20.0  # seconds: what is judged by its header alone has ended by then


async def appended(
    request: Request,
    service: Running,
    upload: Unfinished,
    *,
    offset: int = 0,
    complete: bool | None,
) -> tuple[Unfinished, Outcome | None]:
    """The upload with this request's bytes, and what it became if they were the last ones.
    `complete`: whether they are, as the IETF's draft tells it; None: the length tells.
    """
    turns, identity = service.turns, upload.id
    async with turns.taken(service, upload) as turn:
        upload = turn.upload
        if upload.has_ended or upload.complete:
            raise is_complete(upload)
        if offset != upload.received:
            raise OffsetMismatch(
                f"expected bytes from {upload.received} on, found Upload-Offset: {offset}",
                offset=upload.received,
            )
        length = length_of(request, upload.length, offset, is_last=complete is True)
        _check_fits(request, offset, length)
        if length != upload.length:
            await asyncio.to_thread(rows.measured, service.records, identity, length)
        early = finishing.early_of(upload.purpose)
        receiving = Receiving(service, turns, turn, early)
        try:
            await receiving.all(request, length)
        except RequestRefused as error:
            if finishing.is_final(error) and receiving.is_refused:
                await finishing.refuse(service, upload, turn.file, error)
            raise
        size = turn.file.size
        is_last = size == length if complete is None else complete
        if is_last and length is not None and size != length:
            raise fields.wrong("Upload-Length", f"{length} bytes at the end", size)
        if is_last:
            await asyncio.to_thread(rows.completed, service.records, identity, size)
    upload = await asyncio.to_thread(rows.find, service.records, identity)
    if not is_last:
        return upload, None
    request.state.upload_complete = complete is True
    return upload, await finishing.ended(service, upload, caller_of(request))


def length_of(request: Request, known: int | None, offset: int, *, is_last: bool) -> int | None:
    """The bytes of the whole file, if this request or one before tells; all must tell the same."""
    told = {fields.number(request, "Upload-Length"), known}
    body = fields.announced(request)
    if is_last and body is not None:
        told.add(offset + body)
    found = sorted(told - {None})  # type: ignore[type-var]
    if len(found) > 1:
        raise fields.wrong("Upload-Length", f"{known if known is not None else found[0]}", found)
    return found[0] if found else None


def _check_fits(request: Request, offset: int, length: int | None) -> None:
    """Refuse what would go beyond the length before a byte of it is read."""
    body = fields.announced(request)
    if length is not None and body is not None and offset + body > length:
        raise TooLarge(f"expected {length - offset} bytes at most, found {body}")


async def at_rest(service: Running, upload: Unfinished) -> Unfinished:
    """The upload once nobody writes to it, so that what it says can be relied on."""
    turns = service.turns
    if upload.writer is not None or turns.is_held(upload.id):
        async with turns.taken(service, upload) as turn:
            return turn.upload
    return upload


async def noticed(request: Request, service: Running, upload: Unfinished) -> Unfinished:
    """Begin to store what is complete and was not stored when the service ended."""
    if not upload.complete or upload.has_ended:
        return upload
    ending = finishing.ended(service, upload, caller_of(request))
    with contextlib.suppress(TimeoutError, PrescoreError):
        await asyncio.wait_for(ending, _SOON)
    return await asyncio.to_thread(rows.find, service.records, upload.id)


def is_complete(upload: Unfinished) -> RequestRefused:
    check_not_refused(upload)
    became = "is being stored" if upload.location is None else f"became {upload.location}"
    return UploadComplete(f"the upload is complete and {became}: nothing can be appended")


def check_not_refused(upload: Unfinished) -> None:
    if upload.is_refused:
        raise UploadRefused(
            f"this upload was refused (GET /v1/uploads/{upload.id} says why): send another file"
        )


def check_scope(service: Running, purpose: Purpose) -> None:
    """Forbidden where what an upload becomes needs more than uploads do."""
    if purpose.kind == "dataset":
        require(service.asker, Scope.PUBLISH, "a version of a dataset")
