"""The type of functions that report progress, and that can end a work.

A Progress may raise Canceled, which ends the work like any other error. So a work reports as often
as it can end: after each block, and with unchanged numbers while it waits for another process.
"""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # done, total; may raise Canceled


def silent(done: int, total: int) -> None:
    """A Progress that does nothing."""
