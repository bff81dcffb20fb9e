"""A service in this process, where the distribution that has it is installed."""

import gc
from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from pathlib import Path

from prescore.errors import InvalidArgument

HERE = "http://localhost"
_GROUP = "prescore.here"
INSTALL = "pip install -c deploy/constraints.txt ./service/client '.[service,workers]'"


def is_installed() -> bool:
    return bool(entry_points(group=_GROUP))


def run_service(home: Path | None) -> AbstractContextManager[Path]:
    """A service until the end of the block; gives the socket at which it listens."""
    entries = entry_points(group=_GROUP)
    if not entries:
        raise InvalidArgument(
            "a service in this process needs packages that are not installed. Install them from a "
            f"clone of Prescore: {INSTALL}"
        )
    (entry,) = entries
    collects = gc.isenabled()
    gc.disable()  # with `freeze`, a fifth of the time of a short command
    try:
        service: AbstractContextManager[Path] = entry.load()(home)
    finally:
        gc.freeze()
        if collects:
            gc.enable()
    return service
