"""Shows the progress of a run: a live table on a terminal, else one line for each change."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from prescore.cli import console, text
from prescore.client import Client
from prescore.errors import TimedOut
from prescore.http.polling import OnChange
from prescore.models import Evaluation, Run, Work
from prescore.plain_text import quoted

R = TypeVar("R", bound=Run)
MOST_LINES = 20_000  # of progress in a log


def follow(client: Client, id_: str, timeout: float | None = None) -> Evaluation:
    """Wait for the run's end, or `timeout` seconds; returns the run as it then is."""
    try:
        with _display() as show:
            return client.wait(id_, timeout, show)
    except TimedOut as error:
        console.say(f"{error}; watch it: prescore watch {id_}")
        return cast("Evaluation", error.run)
    except KeyboardInterrupt:
        console.say(
            f"{id_} goes on in the service; "
            f"watch it again: prescore watch {id_}; stop it: prescore cancel {id_}"
        )
        raise typer.Exit(console.INTERRUPTED) from None


def follow_all(client: Client, ids: Sequence[str], timeout: float | None) -> list[Evaluation]:
    """Wait for several runs, for `timeout` seconds in all."""
    until = None if timeout is None else time.monotonic() + timeout
    found: list[Evaluation] = []
    for id_ in ids:
        left = timeout if until is None or not found else max(0.0, until - time.monotonic())
        try:
            found.append(follow(client, id_, left))
        except typer.Exit:
            if others := ids[len(found) + 1 :]:
                console.say(f"so do {', '.join(others)}")
            raise
    return found


def computed(compute: Callable[..., R]) -> R:
    """Wait for a run that is no evaluation, which `compute(on_change=…)` begins and returns at its
    end; its works are told as they change.
    """
    lines = _Lines()
    known: list[str] = []

    def tell(run: R) -> None:
        known[:] = [run.id]
        lines.works(run.works)

    try:
        return compute(on_change=tell)
    except KeyboardInterrupt:
        if known:
            console.say(f"{known[0]} goes on in the service")
        raise typer.Exit(console.INTERRUPTED) from None


@contextmanager
def _display() -> Iterator[OnChange]:
    if not sys.stderr.isatty():
        yield _Lines()
        return
    with Live(console=Console(stderr=True), transient=True) as live:
        yield lambda evaluation: live.update(_table(evaluation), refresh=True)


class _Lines:
    """Prints each state once; not the progress of works, which would fill a CI's log, and not what
    the command prints at the end.
    """

    def __init__(self) -> None:
        self._told: set[int] = set()  # hashes, since a service may say much

    def works(self, works: Iterable[Work]) -> None:
        for work in works:
            name, status, _, seconds, remarks = text.work_row(work)
            self._tell((name, status), (seconds, remarks))

    def __call__(self, evaluation: Evaluation) -> None:
        if not evaluation.ended:
            self.works(work for work in evaluation.works if not work.cached)
        self._tell((evaluation.id, evaluation.status), ())

    def _tell(self, news: tuple[str, ...], more: tuple[str, ...]) -> None:
        if hash(news) in self._told or len(self._told) > MOST_LINES:
            return
        self._told.add(hash(news))
        if len(self._told) > MOST_LINES:
            console.say(f"more than {MOST_LINES} changes: no more of them are shown")
        else:
            console.say("  ".join(filter(None, news + more)))


def _table(evaluation: Evaluation) -> Group:
    heading = Text(quoted(f"{evaluation.id}  {evaluation.status}  {evaluation.dataset}"))
    works = _grid(text.work_row(work) for work in evaluation.works)
    expected = (*text.expected_rows(evaluation.estimate or evaluation.forecast or {}),)
    gates = text.gate_table(evaluation.gates)
    return Group(heading, works, *map(_grid, (text.score_rows(evaluation.scores), expected, gates)))


def _grid(rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=True)
    for row in rows:
        table.add_row(*(Text(quoted(cell)) for cell in row))
    return table
