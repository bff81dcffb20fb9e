"""Those who are told how far task is, and end it."""

from collections.abc import Callable

from service.contract.errors import RunCanceled
from workers.progress import Progress


def ends(done: int, total: int) -> None:
    """A Progress that ends the task when it is first told."""
    raise RunCanceled(f"stopped after {done} of {total}")


def ends_when(over: Callable[[int], bool]) -> Progress:
    """One that ends it when it is told that so much is done."""

    def told(done: int, total: int) -> None:
        if over(done):
            ends(done, total)

    return told
