"""Shows the progress of a run: a live table on a terminal, else a few lines."""

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

from prescore import exit_codes
from prescore.cli import console, text
from prescore.client import Client
from prescore.counts import counted
from prescore.errors import TimedOut
from prescore.http.polling import OnChange
from prescore.models import Evaluation, Run, RunTask
from prescore.plain_text import quoted

R = TypeVar("R", bound=Run)
MOST_LINES = 2_000  # of progress in a log
SHORT = 11  # characters of a run's id, by which a few runs are told apart
MOST_NAMED = 5  # tasks that run, in a line
EVERY_SECONDS = 30.0
UNDER_WAY = frozenset({"waiting", "ready", "running"})


def follow(
    client: Client, id_: str, timeout: float | None = None, *, of_several: bool = False
) -> Evaluation:
    """Wait for the run's end, or `timeout` seconds; returns the run as it then is."""
    try:
        with _display(of_several=of_several) as show:
            return client.wait(id_, timeout, show)
    except TimedOut as error:
        console.say(f"{error}; watch it: prescore watch {id_}")
        return cast("Evaluation", error.run)
    except KeyboardInterrupt:
        if client.is_here:
            client.cancel(id_)
            console.say("stopped")
        else:
            console.say(
                f"{id_} goes on in the service; "
                f"watch it again: prescore watch {id_}; stop it: prescore cancel {id_}"
            )
        raise typer.Exit(exit_codes.INTERRUPTED) from None


def follow_all(client: Client, ids: Sequence[str], timeout: float | None) -> list[Evaluation]:
    """Wait for several runs, for `timeout` seconds in all."""
    until = None if timeout is None else time.monotonic() + timeout
    found: list[Evaluation] = []
    for id_ in ids:
        left = timeout if until is None or not found else max(0.0, until - time.monotonic())
        try:
            found.append(follow(client, id_, left, of_several=len(ids) > 1))
        except typer.Exit:
            if others := ids[len(found) + 1 :]:
                console.say(f"so do {', '.join(others)}")
            raise
    return found


def computed(compute: Callable[..., R]) -> R:
    """Wait for a run that is no evaluation, which `compute(on_change=…)` begins and returns at its
    end; its tasks are told as they change.
    """
    lines = _Lines()
    known: list[str] = []

    def tell(run: R) -> None:
        known[:] = [run.id]
        lines(run)

    try:
        return compute(on_change=tell)
    except KeyboardInterrupt:
        if known:
            console.say(f"{known[0]} goes on in the service")
        raise typer.Exit(exit_codes.INTERRUPTED) from None


@contextmanager
def _display(*, of_several: bool) -> Iterator[OnChange]:
    if not sys.stderr.isatty():
        yield _Lines(of_several=of_several)
        return
    with Live(console=Console(stderr=True), transient=True) as live:
        yield lambda evaluation: live.update(_table(evaluation), refresh=True)


class _Lines:
    """Progress in a log: a line at each task's end, and one every `EVERY_SECONDS` between; not what
    the command prints at the end. `of_several`: tasks' lines begin with their run.
    """

    def __init__(self, *, of_several: bool = False) -> None:
        self._of_several = of_several
        self._told: set[int] = set()  # hashes, since a service may say much
        self._last = time.monotonic()

    def __call__(self, run: Run) -> None:
        tasks = [task for task in run.tasks if not task.cached]
        for task in () if run.ended and isinstance(run, Evaluation) else tasks:
            if task.status not in UNDER_WAY:
                name, status, _, seconds, remarks = text.task_row(task)
                of = (run.id[:SHORT],) if self._of_several else ()
                self._tell((*of, name, status), (seconds, remarks))
        self._tell((run.id, run.status), ())
        if not run.ended and time.monotonic() - self._last >= EVERY_SECONDS:
            self._say(_state(run, tasks))

    def _tell(self, news: tuple[str, ...], more: tuple[str, ...]) -> None:
        if hash(news) in self._told or len(self._told) > MOST_LINES:
            return
        self._told.add(hash(news))
        if len(self._told) > MOST_LINES:
            self._say(f"more than {MOST_LINES} changes: no more of them are shown")
        else:
            self._say("  ".join(filter(None, news + more)))

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        console.say(line)


def _state(run: Run, tasks: Sequence[RunTask]) -> str:
    done = sum(task.status not in UNDER_WAY for task in tasks)
    rows = [text.task_row(task) for task in tasks if task.status == "running"]
    running = ", ".join(" ".join(filter(None, (row[0], row[2]))) for row in rows[:MOST_NAMED])
    return f"{run.id}  {run.status}  {done} of {counted(len(tasks), 'task')} ended" + (
        f"; running: {running}" if running else ""
    )


def _table(evaluation: Evaluation) -> Group:
    heading = Text(quoted(f"{evaluation.id}  {evaluation.status}  {evaluation.dataset}"))
    tasks = _grid(text.task_row(task) for task in evaluation.tasks)
    expected = (*text.expected_rows(evaluation.estimate or evaluation.forecast or {}),)
    gates = text.gate_table(evaluation.gates)
    return Group(heading, tasks, *map(_grid, (text.score_rows(evaluation.scores), expected, gates)))


def _grid(rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=True)
    for row in rows:
        table.add_row(*(Text(quoted(cell)) for cell in row))
    return table
