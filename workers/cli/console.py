"""What the commands share: errors as sentences, progress, Ctrl-C."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from service.contract.errors import Canceled, PrescoreError

Out = Annotated[Path, typer.Argument(help="The bundle to write: a folder, made if need be.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@contextmanager
def errors() -> Iterator[None]:
    """Our errors are sentences for a person; anything else is a defect and keeps its traceback."""
    try:
        yield
    except Canceled as error:
        typer.echo(f"stopped: {error.detail}", err=True)
        raise typer.Exit(130) from None
    except PrescoreError as error:
        typer.echo(f"{error.code}: {error.detail}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks to stop at the next batch, the second one interrupts at once."""
    asked = False

    def ask(number: int, frame: object) -> None:  # noqa: ARG001  the signature of a handler
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress(what: str) -> Iterator[tuple[Progress, Any]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar, bar.add_task(what, total=None)
