"""Whether the sandbox holds on this machine, tried by a child in it: for `prescore doctor`."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workers.sandbox import confined, landlock
from workers.sandbox.converter import asking
from workers.sandbox.limits import Limits
from workers.sandbox.starting import Task

_OPERATION = f"{__name__}:reach"
_SECONDS = 10.0


def holds() -> str:
    """What keeps children in. Raises Unavailable, with what is missing or was reached."""
    return _judged(confined.run(_OPERATION, [], [], limits=Limits(_SECONDS)))


def holds_at(converter: Path) -> str:
    """The same of the children of a converter. Raises ConverterUnavailable, too."""
    asking.check(converter)
    child = asking.There(converter, Task(_OPERATION, [], [], {}, Limits(_SECONDS)))
    try:
        return _judged(child.begin())
    finally:
        child.end()


def _judged(answer: Mapping[str, Any]) -> str:
    reached = answer.get("reached")
    if reached != []:
        raise confined.Unavailable(f"a child in the sandbox has reached: {reached}")
    return f"Landlock {landlock.version()} and seccomp"


def reach(
    inputs: Sequence[Path],  # noqa: ARG001  an operation's arguments
    outputs: Sequence[Path],  # noqa: ARG001
    parameters: Mapping[str, Any],  # noqa: ARG001
) -> Mapping[str, Any]:
    tries: dict[str, Callable[[], Any]] = {
        "files": Path("/etc/passwd").read_bytes,
        "the network": lambda: socket.socket(type=socket.SOCK_DGRAM).close(),
        "other processes": lambda: os.kill(os.getppid(), 0),
        "programs": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    }
    return {"reached": [name for name, attempt in tries.items() if _succeeds(attempt)]}


def _succeeds(attempt: Callable[[], Any]) -> bool:
    try:
        attempt()
    except FileNotFoundError:  # the kernel has looked
        return True
    except OSError:
        return False
    return True
