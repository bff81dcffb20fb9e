"""Downloads: a file is written completely and with the right content, or not at all."""

import hashlib
from pathlib import Path

from prescore.errors import InvalidArgument, ServiceError
from prescore.http.answers import build_foreign_error
from prescore.http.transport import HttpRequest, Transport
from prescore.models import Problem

DOWNLOAD_BYTES = 4 << 30  # to a file; captions of two million images take 1 GB
PICTURE_BYTES = 4 << 20  # of a small form of a picture: 960 x 960 of noise have a sixth of it


def fetch_file(
    transport: Transport, request: HttpRequest, path: Path, digest: str | None = None
) -> None:
    """Download to `path`; an older file there stays until the new one is complete. Raises
    ServiceError where the content has another digest than `digest`.
    """
    transport.repeat(lambda: _save_file(transport, request, path, digest))


def fetch_picture(transport: Transport, request: HttpRequest) -> bytes:
    """An image as WebP."""
    content = transport.send(request, most=PICTURE_BYTES).content
    if (content[:4], content[8:12]) != (b"RIFF", b"WEBP"):
        raise build_foreign_error(transport.url, f"expected WebP, found {content[:12]!r}")
    return content


def _save_file(transport: Transport, request: HttpRequest, path: Path, digest: str | None) -> None:
    partial = path.with_name(path.name + ".partial")
    content_digest = hashlib.sha256()
    try:
        with transport.opened(request) as response, partial.open("wb") as file:
            for piece in transport.pieces(response, DOWNLOAD_BYTES):
                file.write(piece)
                content_digest.update(piece)
        if digest is not None:
            _check_digest(digest, f"sha256:{content_digest.hexdigest()}")
        partial.replace(path)
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def _check_digest(expected: str, found: str) -> None:
    if found != expected:
        detail = (
            f"expected the content {expected}, as the service describes it, found {found}; nothing "
            "was kept. Try again, and tell whoever runs the service if it stays so"
        )
        raise ServiceError(Problem(title="another file than was announced", detail=detail))
