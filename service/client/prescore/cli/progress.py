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
from prescore.cli import console, gate_tables, run_summaries
from prescore.client import Client
from prescore.errors import TimedOut
from prescore.http.polling import OnChange
from prescore.models import Evaluation, Run, RunTask
from prescore.plain_text import format_count, quoted

R = TypeVar("R", bound=Run)
MOST_LINES = 2_000  # of progress in a log
SHORT = 11  # characters of a run's id, by which a few runs are told apart
MOST_NAMED = 5  # tasks that run, in a line
EVERY_SECONDS = 30.0
UNDER_WAY = frozenset({"waiting", "ready", "running"})


def follow_run(
    client: Client, id_: str, timeout: float | None = None, *, of_several: bool = False
) -> Evaluation:
    """Wait for a run's end, or `timeout` seconds; returns the run as it then is."""
    try:
        with _show_progress(of_several=of_several) as show:
            return client.wait(id_, timeout, show)
    except TimedOut as error:
        console.print_note(f"{error}; watch it: prescore watch {id_}")
        return cast("Evaluation", error.run)
    except KeyboardInterrupt:
        if client.is_here:
            client.cancel(id_)
            console.print_note("stopped")
        else:
            console.print_note(
                f"{id_} goes on in the service; "
                f"watch it again: prescore watch {id_}; stop it: prescore cancel {id_}"
            )
        raise typer.Exit(exit_codes.INTERRUPTED) from None


def follow_runs(client: Client, ids: Sequence[str], timeout: float | None) -> list[Evaluation]:
    """Wait for several runs, for `timeout` seconds in all."""
    until = None if timeout is None else time.monotonic() + timeout
    runs: list[Evaluation] = []
    for id_ in ids:
        left = timeout if until is None or not runs else max(0.0, until - time.monotonic())
        try:
            runs.append(follow_run(client, id_, left, of_several=len(ids) > 1))
        except typer.Exit:
            if others := ids[len(runs) + 1 :]:
                console.print_note(f"so do {', '.join(others)}")
            raise
    return runs


def follow_computation(compute: Callable[..., R]) -> R:
    """Wait for a run that is no evaluation, which `compute(on_change=…)` begins and returns at its
    end; its tasks are printed as they change.
    """
    lines = ProgressLines()
    try:
        return compute(on_change=lines)
    except KeyboardInterrupt:
        if lines.run_id:
            console.print_note(f"{lines.run_id} goes on in the service")
        raise typer.Exit(exit_codes.INTERRUPTED) from None


@contextmanager
def _show_progress(*, of_several: bool) -> Iterator[OnChange]:
    if not sys.stderr.isatty():
        yield ProgressLines(of_several=of_several)
        return
    with Live(console=Console(stderr=True), transient=True) as live:
        yield lambda evaluation: live.update(_build_table(evaluation), refresh=True)


class ProgressLines:
    """Progress in a log: a line at each task's end, and one every `EVERY_SECONDS` between; not what
    the command prints at the end. `of_several`: tasks' lines begin with their run.
    """

    def __init__(self, *, of_several: bool = False) -> None:
        self.run_id = ""
        self._of_several = of_several
        self._printed: set[int] = set()  # hashes, since a service may say much
        self._last = time.monotonic()

    def __call__(self, run: Run) -> None:
        self.run_id = run.id
        tasks = [task for task in run.tasks if not task.cached]
        for task in () if run.ended and isinstance(run, Evaluation) else tasks:
            if task.status not in UNDER_WAY:
                name, status, _, seconds, remarks = run_summaries.build_task_row(task)
                run_id = (run.id[:SHORT],) if self._of_several else ()
                self._print_once((*run_id, name, status), (seconds, remarks))
        self._print_once((run.id, run.status), ())
        if not run.ended and time.monotonic() - self._last >= EVERY_SECONDS:
            self._print(_format_state(run, tasks))

    def _print_once(self, news: tuple[str, ...], more: tuple[str, ...]) -> None:
        if hash(news) in self._printed or len(self._printed) > MOST_LINES:
            return
        self._printed.add(hash(news))
        if len(self._printed) > MOST_LINES:
            self._print(f"more than {MOST_LINES} changes: no more of them are shown")
        else:
            self._print("  ".join(filter(None, news + more)))

    def _print(self, line: str) -> None:
        self._last = time.monotonic()
        console.print_note(line)


def _format_state(run: Run, tasks: Sequence[RunTask]) -> str:
    done = sum(task.status not in UNDER_WAY for task in tasks)
    rows = [run_summaries.build_task_row(task) for task in tasks if task.status == "running"]
    running = ", ".join(" ".join(filter(None, (row[0], row[2]))) for row in rows[:MOST_NAMED])
    return f"{run.id}  {run.status}  {done} of {format_count(len(tasks), 'task')} ended" + (
        f"; running: {running}" if running else ""
    )


def _build_table(evaluation: Evaluation) -> Group:
    heading = Text(quoted(f"{evaluation.id}  {evaluation.status}  {evaluation.dataset}"))
    tasks = _build_grid(run_summaries.build_task_row(task) for task in evaluation.tasks)
    expected = (*run_summaries.list_expectations(evaluation.estimate or evaluation.forecast or {}),)
    gates = gate_tables.build_table(evaluation.gates)
    return Group(
        heading,
        tasks,
        *map(_build_grid, (run_summaries.build_score_rows(evaluation.scores), expected, gates)),
    )


def _build_grid(rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=True)
    for row in rows:
        table.add_row(*(Text(quoted(cell)) for cell in row))
    return table
