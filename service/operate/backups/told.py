"""How far a backup or its restoration is, on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

Tell = Callable[[str, int, int], None]  # a step's name, how much of it is done, of how much


def nobody(step: str, done: int, total: int) -> None:
    """Tell nobody."""


@contextmanager
def on_terminal() -> Iterator[Tell]:
    """Bars on stderr, one for each step; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield nobody
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bars: dict[str, TaskID] = {}

        def tell(step: str, done: int, total: int) -> None:
            if step not in bars:
                bars[step] = progress.add_task(step)
            progress.update(bars[step], completed=done, total=total)

        yield tell
