"""Downloads: a file is written completely and with the right content, or not at all."""

import hashlib
from pathlib import Path

from prescore.errors import InvalidArgument, ServiceError
from prescore.http import bounds
from prescore.http.steps import Open, Read, Request, Steps
from prescore.models import Problem


def saved(request: Request, path: Path, digest: str | None = None) -> Steps[None]:
    """Download once to `path`; an older file there stays until the new one is complete. Raises
    ServiceError where the content has another digest than `digest`.
    """
    partial = path.with_name(path.name + ".partial")
    found = hashlib.sha256()
    yield Open(request, bounds.DOWNLOAD_BYTES)
    try:
        with partial.open("wb") as file:
            while (piece := (yield Read())) is not None:
                file.write(piece)
                found.update(piece)
        if digest is not None:
            _check(digest, f"sha256:{found.hexdigest()}")
        partial.replace(path)
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def _check(expected: str, found: str) -> None:
    if found != expected:
        detail = (
            f"expected the content {expected}, as the service describes it, found {found}; nothing "
            "was kept. Try again, and tell whoever runs the service if it stays so"
        )
        raise ServiceError(Problem(title="another file than was announced", detail=detail))
