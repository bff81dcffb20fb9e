"""What all commands share: exit codes, connections, and output for people and programs.

Results go to stdout, everything else to stderr: progress bars on a terminal, else plain lines.
What others wrote is plain text in all of it, and makes no line of its own.
"""

import io
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer
from rich import filesize
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from prescore import exit_codes, plain_text
from prescore.cli import nearly, telling
from prescore.cli.nearly import Meant
from prescore.cli.options import Connection
from prescore.client import Client
from prescore.errors import (
    InvalidArgument,
    PrescoreClientError,
    Refused,
)
from prescore.files import reading
from prescore.http import resumed, uploads
from prescore.models import Answer, Evaluation, Run


@contextmanager
def connected(connection: Connection, meant: Meant | None = None) -> Iterator[Client]:
    """A client; its errors end the command with a sentence on stderr and an exit code."""
    try:
        with opened(connection) as client, suggesting(client, meant):
            yield client
    except PrescoreClientError as error:
        say_all(telling.told(error))
        raise typer.Exit(exit_codes.of(error)) from None


@contextmanager
def opened(connection: Connection, key: str | None = None) -> Iterator[Client]:
    """A client; its errors are left to the caller. `key`: instead of that of the connection."""
    if connection.here:
        with _warnings_printed(), Client(here=connection.home or True) as client:
            yield client
        return
    if key is None and connection.key_file is not None:
        key = _key(connection.key_file)
    with _warnings_printed(), Client(connection.url, key, patience=connection.patience) as client:
        yield client


@contextmanager
def suggesting(client: Client, meant: Meant | None) -> Iterator[None]:
    """Note, for a refused request, what was probably meant by names that the service lacks."""
    try:
        yield
    except Refused as error:
        named = "did you mean" in str(error)
        for sentence in () if meant is None or named else nearly.hints(client, meant):
            error.add_note(sentence)
        raise


def suggest(client: Client, meant: Meant) -> None:
    """Print what was probably meant by names that the service lacks."""
    for sentence in nearly.hints(client, meant):
        say(sentence)


def suggest_label(client: Client, dataset: str, wanted: Mapping[str, str]) -> None:
    """Print the labels that were probably meant where no run has those that are wanted."""
    for sentence in nearly.labels(client, dataset, wanted):
        say(sentence)


def say(text: str) -> None:
    """Print one line to stderr."""
    typer.echo(plain_text.line(text), err=True)


def say_all(text: str) -> None:
    """Print the lines of our own text, such as an error's, in which foreign parts are quoted."""
    for line in text.split("\n"):
        say(line)


def show(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(plain_text.line(line))


def show_json(*answers: Answer, many: bool = False) -> None:
    """Print one answer as a JSON object, or with `many` all of them as a list."""
    found = [answer.model_dump(mode="json") for answer in answers]
    print_json(found if many else found[0])


def print_json(found: object) -> None:
    typer.echo(plain_text.json_line(json.dumps(found)))


def fail(why: str) -> NoReturn:
    """Say on stderr why there is no result, and end the command so."""
    say(why)
    raise typer.Exit(exit_codes.FAILED)


def exit_as(run: Run) -> None:
    """End the command as failed for a run that failed, was canceled or gave nothing."""
    if run.ended and run.status != "succeeded":
        raise typer.Exit(exit_codes.FAILED)
    if isinstance(run, Evaluation) and (unavailable := _unavailable(run)):
        fail(f"{run.id} has no score: {', '.join(unavailable)} unavailable")


def _unavailable(run: Evaluation) -> list[str]:
    """The tasks that kept a run which has ended from giving any score."""
    if run.scores or not run.ended:
        return []
    return [task.name for task in run.tasks if task.status == "unavailable"]


def names(given: Iterable[str] | None) -> list[str] | None:
    """Names from an option that may be given many times, each time several separated by commas."""
    if not given:
        return None
    found = (name.strip() for text in given for name in text.split(","))
    return list(dict.fromkeys(name for name in found if name))


def labels(given: Sequence[str]) -> dict[str, str]:
    for label in given:
        if label.find("=") < 1:
            raise typer.BadParameter(f"--label: expected NAME=VALUE, found {label!r:.100}")
    return dict(label.split("=", 1) for label in given)


def write(path: Path, content: bytes, *, append: bool = False) -> None:
    try:
        with path.open("ab" if append else "wb") as stream:
            stream.write(content)
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}") from None


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    stream = io.StringIO(newline="")
    plain_text.write_table(stream, [header, *rows])
    write(path, stream.getvalue().encode("utf-8", "replace"))


@contextmanager
def upload_shown(name: str) -> Iterator[uploads.Progress]:
    """Show the progress of an upload, and at the end that the service has taken it; nothing appears
    if no byte has to be sent. Who stops a large one is told how it goes on.
    """
    begun = 0, 0
    shown = _upload_bar if sys.stderr.isatty() else _upload_lines

    def report(done: int, total: int) -> None:
        nonlocal begun
        begun = done, total
        tell(done, total)

    try:
        with shown(name) as tell:
            yield report
    except KeyboardInterrupt:
        if begun[1] > resumed.LARGE_BYTES:
            say(
                f"stopped; the service keeps what it has of {name} for a day: the same command "
                "goes on from there"
            )
        raise


@contextmanager
def _upload_bar(name: str) -> Iterator[uploads.Progress]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    with Progress(*columns, TransferSpeedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(f"uploading {plain_text.quoted(name)}", total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


@contextmanager
def _upload_lines(name: str) -> Iterator[uploads.Progress]:
    began_at: int | None = None

    def tell(done: int, total: int) -> None:
        nonlocal began_at
        if began_at is None and done > 0 and done < total:
            said = f", {filesize.decimal(done)} of them are there already"
            say(f"uploading {name}: {filesize.decimal(total)}{said}")
            began_at = done
        elif done == 0:
            say(f"uploading {name}: {filesize.decimal(total)}")
            began_at = 0

    yield tell
    if began_at is not None:
        say(f"uploaded {name}")


@contextmanager
def _warnings_printed() -> Iterator[None]:
    """Print what the library logs as warnings, such as retries, to stderr."""
    handler = _PrintingHandler(logging.WARNING)
    log = logging.getLogger("prescore")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class _PrintingHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def _key(path: Path) -> str:
    with reading.readable(path):
        key = path.read_text(encoding="ascii", errors="replace").strip()
    if not key:
        raise InvalidArgument(f"{path} contains no key")
    return key
