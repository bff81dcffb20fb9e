"""Downloads: a file is written completely or not at all."""

from pathlib import Path

from prescore.errors import InvalidArgument
from prescore.http import bounds
from prescore.http.steps import Open, Read, Request, Steps


def saved(request: Request, path: Path) -> Steps[None]:
    """Download once to `path`; an older file there stays until the new one is complete."""
    partial = path.with_name(path.name + ".partial")
    yield Open(request, bounds.DOWNLOAD_BYTES)
    try:
        with partial.open("wb") as file:
            while (piece := (yield Read())) is not None:
                file.write(piece)
        partial.replace(path)
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
