"""How long work says how far it is, and how it is asked to stop."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # done, total
Stop = Callable[[], bool]  # asked between two blocks of work; True ends it with Canceled


def silent(done: int, total: int) -> None:
    """A Progress that tells nobody."""


def never() -> bool:
    """A Stop that does not."""
    return False
