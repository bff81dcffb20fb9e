"""How work says how far it is, and how it is ended.

Who is told may end the work: a Progress raises Canceled, and the work lets it pass like any other
error. So work tells as often as it can end: after each block, and with unchanged numbers where it
waits for another process.
"""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # done, total; may raise Canceled


def silent(done: int, total: int) -> None:
    """A Progress that tells nobody."""
