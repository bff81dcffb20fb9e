"""Uploads: streamed, and sent again from the start after a failure."""

from collections.abc import Callable, Iterator
from pathlib import Path

from prescore.errors import Refused
from prescore.files import models
from prescore.files.reading import Body, check_columns, digest_of_body, file_body
from prescore.http import retries
from prescore.http.addresses import Address
from prescore.http.steps import Do, Request, Send, Steps

STORE_SECONDS = 120.0  # the service checks and stores the file before it answers

Progress = Callable[[int, int], None]  # bytes sent, bytes in all; each attempt starts from 0


def put(place: str, body: Body, content_type: str, progress: Progress | None) -> Request:
    return Request(
        "PUT",
        place,
        headers={"Content-Type": content_type, "Content-Length": str(body.size)},
        body=lambda: _counted(body, progress),
        hold=STORE_SECONDS,
    )


def stored_checkpoint(address: Address, path: Path, progress: Progress | None) -> Steps[str]:
    """Send a checkpoint, or the files of a model, unless the service has it; returns its digest."""
    body: Body = yield Do(lambda: models.body(path))
    return (yield from _stored(address, body, "/v1/checkpoints", progress))


def stored_columns(address: Address, path: Path, progress: Progress | None) -> Steps[str]:
    """Send a file of columns unless the service has it; returns its digest."""
    check_columns(path)
    return (yield from _stored(address, file_body(path), "/v1/columns", progress))


def _stored(address: Address, body: Body, folder: str, progress: Progress | None) -> Steps[str]:
    """Every attempt asks first: an upload may be complete although its answer was lost."""
    digest: str = yield Do(lambda: digest_of_body(body))
    place = f"{folder}/{digest}"
    upload = put(place, body, "application/octet-stream", progress)

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
        raise
    return True


def _counted(body: Body, progress: Progress | None) -> Iterator[bytes]:
    report = progress or _silent
    sent = 0
    report(sent, body.size)
    for chunk in body.chunks():
        yield chunk
        sent += len(chunk)
        report(sent, body.size)


def _silent(done: int, total: int) -> None:
    pass
