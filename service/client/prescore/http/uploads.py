"""Uploads: streamed. A small file is sent again from the start after a failure, a large one goes on
where it was cut.
"""

from collections.abc import Callable
from pathlib import Path

from prescore.errors import Refused
from prescore.files import models
from prescore.files.reading import Body, check_columns, digest_of_body, file_body
from prescore.http import resumed, retries
from prescore.http.addresses import Address
from prescore.http.steps import Do, Request, Send, Steps

Progress = Callable[[int, int], None]  # bytes there, bytes in all; attempts begin where they begin


def put(place: str, body: Body, content_type: str, progress: Progress | None) -> Request:
    return Request(
        "PUT",
        place,
        headers={"Content-Type": content_type, "Content-Length": str(body.size)},
        body=lambda: resumed.counted(body, progress),
        hold=resumed.STORE_SECONDS,
    )


def stored_checkpoint(address: Address, path: Path, progress: Progress | None) -> Steps[str]:
    """Send a checkpoint, or the files of a model, unless the service has it; returns its digest."""
    body: Body = yield Do(lambda: models.body(path))
    return (yield from _stored(address, body, "checkpoint", progress))


def stored_columns(address: Address, path: Path, progress: Progress | None) -> Steps[str]:
    """Send a file of columns unless the service has it; returns its digest."""
    check_columns(path)
    return (yield from _stored(address, file_body(path), "columns", progress))


_FOLDERS = {"checkpoint": "/v1/checkpoints", "columns": "/v1/columns"}


def _stored(address: Address, body: Body, kind: str, progress: Progress | None) -> Steps[str]:
    """Every attempt asks first: an upload may be complete although its answer was lost."""
    digest: str = yield Do(lambda: digest_of_body(body))
    place = f"{_FOLDERS[kind]}/{digest}"
    upload = put(place, body, "application/octet-stream", progress)
    if body.size > resumed.LARGE_BYTES:
        if (yield from retries.persistently(address, lambda: is_there(place))):
            return digest
        wanted = resumed.Wanted(kind, digest)
        yield from resumed.stored(address, wanted, body, progress, upload)
        return digest

    def attempt() -> Steps[None]:
        if not (yield from is_there(place)):
            yield Send(upload)

    yield from retries.persistently(address, attempt)
    return digest


def is_there(place: str) -> Steps[bool]:
    try:
        yield Send(Request("HEAD", place))
    except Refused as error:
        if error.status == 404:
            return False
        if error.status == 401:
            yield Send(Request("GET", "/v1/me"))  # its refusal has words, which HEAD's has not
        raise
    return True
