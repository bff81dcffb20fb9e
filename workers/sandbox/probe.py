"""Probe of the sandbox on this machine, by a child in it: for `prescore doctor`."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from service.kernel import landlock
from service.kernel.process_limits import ChildLimits
from workers.sandbox import converter_client, operations
from workers.sandbox.children import OperationCall

_OPERATION = f"{__name__}:try_escapes"
LIMITS = ChildLimits(seconds=10.0)


def check_sandbox() -> str:
    """Check that the sandbox holds; return what keeps children in. Raises ConfinementUnavailable,
    with what is missing or was reached.
    """
    return _judged(operations.run_operation(_OPERATION, [], [], limits=LIMITS))


def check_converter_sandbox(converter: Path) -> str:
    """Check the sandbox of a converter's children. Raises ConverterUnavailable, too."""
    converter_client.check_converter(converter)
    child = converter_client.ConverterChild(
        converter_client.ConverterSocket(converter),
        OperationCall(_OPERATION, [], [], {}, LIMITS),
    )
    try:
        return _judged(child.begin())
    finally:
        child.end()


def _judged(answer: Mapping[str, Any]) -> str:
    reached = answer.get("reached")
    if reached != []:
        raise operations.ConfinementUnavailable(f"a child in the sandbox has reached: {reached}")
    return f"Landlock {landlock.read_landlock_version()} and seccomp"


def try_escapes(
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
