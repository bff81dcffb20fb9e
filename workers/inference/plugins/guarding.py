"""What a plug-in's code may do to a task: fail it, with an error that names the plug-in."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from prescore.plain_text import quoted
from service.contract.errors import PluginFailed, PrescoreError, UnusableCheckpoint
from service.contract.findings import sentence
from service.contract.formats.plugins import InstalledPlugin

SECONDS = 240.0  # of one call; usual ones take less than 5


class Refused(Exception):
    """A plug-in raises it where a checkpoint's config or tensors are not what it expects."""


class _Late(BaseException):
    """A call takes too long. No Exception: a plug-in's own code must not catch it."""


@contextlib.contextmanager
def failures(plugin: InstalledPlugin, doing: str) -> Iterator[None]:
    """Turn what the plug-in's code raises into UnusableCheckpoint, where it refuses a checkpoint,
    or PluginFailed. What Prescore's own helpers raise, and MemoryError, stay as they are.
    """
    try:
        with _limited():
            yield
    except (PrescoreError, MemoryError):
        raise
    except Refused as refused:
        raise UnusableCheckpoint(f"the plug-in {plugin} refused it: {_text(refused)}") from None
    except _Late:
        raise PluginFailed(
            f"the plug-in {plugin} failed in {doing}: no answer within {SECONDS:g} s"
        ) from None
    except (Exception, SystemExit) as error:
        detail = f"the plug-in {plugin} failed in {doing}: {quoted(sentence(error))}"
        raise PluginFailed(detail) from error


def _text(error: Exception) -> str:
    return quoted(sentence(error).removeprefix(f"{type(error).__name__}: "))


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise _Late after SECONDS. Where signals do not come, the task's own deadline ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _late(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    raise _Late
