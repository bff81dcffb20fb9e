"""Downloads: a file is written completely or not at all."""

from pathlib import Path

from prescore.errors import InvalidArgument
from prescore.http import bounds
from prescore.http.transport import Request, Transport


def save(transport: Transport, request: Request, path: Path) -> None:
    """Download once to `path`; an older file there stays until the new one is complete."""
    partial = path.with_name(path.name + ".partial")
    try:
        with (
            transport.translated(),
            transport.stream(request) as response,
            partial.open("wb") as file,
        ):
            for chunk in bounds.chunks(response, bounds.DOWNLOAD_BYTES):
                file.write(chunk)
        partial.replace(path)
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
