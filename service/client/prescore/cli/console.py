"""Connections, exit codes, and output for people and programs, which all commands share.

Results go to stdout, everything else to stderr: progress bars on a terminal, else plain lines.
What others wrote is plain text in all of it, and makes no line of its own.
"""

import io
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeVar

import typer
from rich import filesize
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from prescore import exit_codes, plain_text
from prescore.cli import request_errors
from prescore.cli.options import Connection
from prescore.cli.suggestions import GivenNames, suggest_names
from prescore.client import Client
from prescore.errors import (
    InvalidArgument,
    PrescoreClientError,
    Refused,
)
from prescore.files import bodies
from prescore.http import resumable_uploads, uploads
from prescore.models import Answer, Evaluation, Run

A = TypeVar("A", bound=Answer)


@contextmanager
def connect_client(connection: Connection, names: GivenNames | None = None) -> Iterator[Client]:
    """Give a client whose errors end the command with a sentence on stderr and an exit code."""
    try:
        with open_client(connection) as client, add_suggestions(client, names):
            yield client
    except PrescoreClientError as error:
        print_notes(request_errors.format_error(error))
        raise typer.Exit(exit_codes.choose_code(error)) from None


@contextmanager
def open_client(connection: Connection, key: str | None = None) -> Iterator[Client]:
    """Give a client whose errors are left to the caller. `key` replaces the connection's."""
    if connection.here:
        with _print_warnings(), Client(here=connection.home or True) as client:
            yield client
        return
    if key is None and connection.key_file is not None:
        key = _read_key(connection.key_file)
    with _print_warnings(), Client(connection.url, key, patience=connection.patience) as client:
        yield client


@contextmanager
def add_suggestions(client: Client, names: GivenNames | None) -> Iterator[None]:
    """Note, for a refused request, near names for those that the service lacks."""
    try:
        yield
    except Refused as error:
        is_named = "did you mean" in str(error)
        for sentence in () if names is None or is_named else suggest_names(client, names):
            error.add_note(sentence)
        raise


def print_note(text: str) -> None:
    """Print one line to stderr."""
    typer.echo(plain_text.line(text), err=True)


def print_notes(text: str) -> None:
    """Print the lines of our own text, such as an error's, in which foreign parts are quoted."""
    for line in text.split("\n"):
        print_note(line)


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(plain_text.line(line))


def print_answer(answer: A, format_lines: Callable[[A], Iterable[str]], *, as_json: bool) -> None:
    """Print an answer as lines, or as a JSON object."""
    print_each([answer], format_lines, as_json=as_json, is_list=False)


def print_each(
    answers: Sequence[A],
    format_lines: Callable[[A], Iterable[str]],
    *,
    as_json: bool,
    is_list: bool,
) -> None:
    """Print the lines of each answer; or a JSON list, or the only answer as a JSON object."""
    if as_json:
        values = [answer.model_dump(mode="json") for answer in answers]
        print_json(values if is_list else values[0])
        return
    for answer in answers:
        print_lines(format_lines(answer))


def print_answers(
    answers: Sequence[A], format_lines: Callable[[Sequence[A]], Iterable[str]], *, as_json: bool
) -> None:
    """Print answers as lines, or as a JSON list."""
    if as_json:
        print_json([answer.model_dump(mode="json") for answer in answers])
    else:
        print_lines(format_lines(answers))


def print_json(value: object) -> None:
    typer.echo(plain_text.json_line(json.dumps(value)))


def end_failed(reason: str) -> NoReturn:
    """Say on stderr why there is no result, and end the command."""
    print_note(reason)
    raise typer.Exit(exit_codes.FAILED)


def exit_by_status(run: Run) -> None:
    """End the command as failed for a run that failed, was canceled or gave nothing."""
    if run.ended and run.status != "succeeded":
        raise typer.Exit(exit_codes.FAILED)
    if not isinstance(run, Evaluation) or run.scores or not run.ended:
        return
    unavailable = [task.name for task in run.tasks if task.status == "unavailable"]
    if unavailable:
        end_failed(f"{run.id} has no score: {', '.join(unavailable)} unavailable")


def split_names(values: Iterable[str] | None) -> list[str] | None:
    """Split an option that may be given many times, each time with several names and commas."""
    if not values:
        return None
    names = (name.strip() for value in values for name in value.split(","))
    return list(dict.fromkeys(name for name in names if name))


def parse_labels(values: Iterable[str] | None) -> dict[str, str]:
    labels: dict[str, str] = {}
    for label in values or ():
        name, equals, value = label.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"--label: expected NAME=VALUE, found {label!r:.100}")
        labels[name] = value
    return labels


def write_file(path: Path, content: bytes, *, append: bool = False) -> None:
    try:
        with path.open("ab" if append else "wb") as stream:
            stream.write(content)
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}") from None


def write_csv(path: Path | None, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table, where a file for it is named."""
    if path is None:
        return
    stream = io.StringIO(newline="")
    plain_text.write_table(stream, [header, *rows])
    write_file(path, stream.getvalue().encode("utf-8", "replace"))


@contextmanager
def show_upload(name: str) -> Iterator[uploads.Progress]:
    """Show the progress of an upload, and at the end that the service has taken it; nothing appears
    if no byte has to be sent. A large one that is stopped says how it goes on.
    """
    size = 0
    show_progress = _show_bar if sys.stderr.isatty() else _print_progress

    def report(done: int, total: int) -> None:
        nonlocal size
        size = total
        show(done, total)

    try:
        with show_progress(name) as show:
            yield report
    except KeyboardInterrupt:
        if size > resumable_uploads.LARGE_BYTES:
            print_note(
                f"stopped; the service keeps what it has of {name} for a day: the same command "
                "goes on from there"
            )
        raise


@contextmanager
def _show_bar(name: str) -> Iterator[uploads.Progress]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    with Progress(*columns, TransferSpeedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(f"uploading {plain_text.quoted(name)}", total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


@contextmanager
def _print_progress(name: str) -> Iterator[uploads.Progress]:
    has_begun = False

    def report(done: int, total: int) -> None:
        nonlocal has_begun
        if done == 0 or (not has_begun and done < total):
            stored = f", {filesize.decimal(done)} of them are there already" if done else ""
            print_note(f"uploading {name}: {filesize.decimal(total)}{stored}")
            has_begun = True

    yield report
    if has_begun:
        print_note(f"uploaded {name}")


@contextmanager
def _print_warnings() -> Iterator[None]:
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
        print_note(record.getMessage())


def _read_key(path: Path) -> str:
    with bodies.translate_read_errors(path):
        key = path.read_text(encoding="ascii", errors="replace").strip()
    if not key:
        raise InvalidArgument(f"{path} contains no key")
    return key
