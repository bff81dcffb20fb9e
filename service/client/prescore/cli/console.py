"""What all commands share: exit codes, connections, and output for people and programs.

Results go to stdout, everything else to stderr: progress bars on a terminal, else plain lines.
"""

import csv
import io
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich import filesize
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from prescore.cli.options import Connection
from prescore.client import Client
from prescore.errors import (
    InvalidArgument,
    PrescoreClientError,
    Refused,
    ServiceError,
    Unreachable,
)
from prescore.files import reading
from prescore.http import uploads
from prescore.models import Answer

REFUSED = 1
USAGE = 2
FAILED = 3  # the run failed, was canceled or has not ended in time
UNREACHABLE = 4
INTERRUPTED = 130


@contextmanager
def connected(connection: Connection) -> Iterator[Client]:
    """A client; its errors end the command with a sentence on stderr and an exit code."""
    try:
        with opened(connection) as client:
            yield client
    except PrescoreClientError as error:
        say(str(error))
        raise typer.Exit(_code(error)) from None


@contextmanager
def opened(connection: Connection) -> Iterator[Client]:
    """A client; its errors are left to the caller."""
    key = None if connection.key_file is None else _key(connection.key_file)
    with _warnings_printed(), Client(connection.url, key, patience=connection.patience) as client:
        yield client


def say(text: str) -> None:
    for line in text.splitlines():
        typer.echo(plain(line), err=True)


def show(lines: Sequence[str]) -> None:
    for line in lines:
        typer.echo(line)


def show_json(*answers: Answer, many: bool = False) -> None:
    """Print one answer as a JSON object, or with `many` all of them as a list."""
    found = [answer.model_dump(mode="json") for answer in answers]
    typer.echo(json.dumps(found if many else found[0]))


def plain(text: str) -> str:
    """Without control characters: names and labels that others wrote cannot steer the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str) -> str:
    return plain(" ".join(text.splitlines()))


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
    table = csv.writer(stream)
    table.writerow(header)
    table.writerows(rows)
    write(path, stream.getvalue().encode("utf-8", "replace"))


@contextmanager
def upload_shown(name: str) -> Iterator[uploads.Progress]:
    """Show the progress of an upload; nothing appears if no byte has to be sent."""
    if not sys.stderr.isatty():
        yield _upload_lines(name)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    with Progress(*columns, TransferSpeedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(f"uploading {plain(name)}", total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def _upload_lines(name: str) -> uploads.Progress:
    def tell(done: int, total: int) -> None:
        if done == 0:
            say(f"uploading {name}: {filesize.decimal(total)}")
        if done == total:
            say(f"uploaded {name}")

    return tell


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


def _code(error: PrescoreClientError) -> int:
    match error:
        case InvalidArgument():
            return USAGE
        case Refused():
            return REFUSED
        case Unreachable() | ServiceError():
            return UNREACHABLE
        case _:
            return FAILED
