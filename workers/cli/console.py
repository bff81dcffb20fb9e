"""Console of commands: options, output, error messages, progress bars, Ctrl-C.

What others wrote is plain text in all output, and makes no line of its own.
"""

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from prescore import PrescoreClientError, ServiceError, exit_codes, plain_text
from prescore.cli import console, request_errors
from prescore.cli.options import check_folder_to_write, file_to_write
from service.contract.errors import PrescoreError, RequestRefused, RunCanceled
from service.contract.metrics import families, tokenizers
from workers.progress import Progress, ignore_progress, watch_step


def option_of_names(names: Callable[[], Sequence[str]], help: str, *flags: str) -> Any:  # noqa: A002
    """An option whose values are the names that `names()` returns when the command runs."""

    def parse(text: str) -> str:
        if text not in names():
            known = ", ".join(map(repr, names()))
            raise typer.BadParameter(f"{text!r} is not one of {known}.")
        return text

    shown = f"<{'|'.join(names())}>"
    return typer.Option(
        *flags, parser=parse, metavar=shown, help=help, autocompletion=lambda: list(names())
    )


def folder_to_write(help: str, more: str = "", *, of: Callable[..., Any] = typer.Argument) -> Any:  # noqa: A002
    """An argument, or an option, that names a folder to write. A wrong one is refused as soon as it
    is named; `more` is said then.
    """
    return of(help=help, callback=lambda path: check_folder_to_write(path, more))


_BUNDLE = "The bundle to write: a folder, created if it does not exist."
Out = Annotated[Path, folder_to_write(_BUNDLE)]
OutFirst = Annotated[
    Path,
    folder_to_write(_BUNDLE, ". The first is the folder to write: were the two swapped?"),
]
Split = Annotated[
    str,
    typer.Option(
        "--dataset",
        metavar="DATASET[/SPLIT]",
        help="A local bundle, or a dataset of a service. Default: the only split, or `test`.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option("--url", help="The service that has the dataset. Default: PRESCORE_URL."),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key-file", help="A file with the service's key, instead of PRESCORE_KEY."),
]
Home = Annotated[
    Path | None,
    typer.Option(help="The folder of all data, as for `prescore serve`. Default: PRESCORE_HOME."),
]
USUAL = ",".join(families.list_usual_families())
NAMES = "Names, separated by commas or given one by one"
Metrics = Annotated[
    list[str] | None,
    typer.Option(help=f"{NAMES}; or `all` that are available here.", show_default=USUAL),
]
Tokens = Annotated[
    str,
    option_of_names(
        tokenizers.list_scored_tokenizers, "none: the text is tokens already.", "--tokenizer"
    ),
]
JsonOut = Annotated[Path | None, file_to_write("Write the JSON to a file.", "--json-out")]
TableOut = Annotated[Path | None, file_to_write("Write the table to a CSV file.", "--csv")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def print_note(line: str) -> None:
    """Print one line to stderr."""
    typer.echo(plain_text.line(line), err=True)


def print_lines(*lines: str) -> None:
    """Print lines to stdout."""
    for line in lines:
        typer.echo(plain_text.line(line))


def print_json(document: object) -> None:
    typer.echo(plain_text.json_line(json.dumps(document)))


def split_names(*given: str) -> list[str]:
    """The names in texts such as `bleu,cider_d`."""
    return console.split_names(given) or []


def print_reasons(what: str, reasons: Mapping[str, str]) -> None:
    """A line for each reason, with the names that it is for."""
    for reason in dict.fromkeys(reasons.values()):
        print_note(
            f"{what}: {', '.join(name for name in reasons if reasons[name] == reason)}: {reason}"
        )


def print_missing(missing: Mapping[str, PrescoreError]) -> None:
    """Say why metrics have no score."""
    for code in dict.fromkeys(error.code for error in missing.values()):
        alike = {name: error.detail for name, error in missing.items() if error.code == code}
        print_reasons(code, alike)


def _code(error: PrescoreError) -> int:
    if isinstance(error.__cause__, ServiceError):  # what is to be read is a service's
        return exit_codes.choose_code(error.__cause__)
    return exit_codes.REFUSED if isinstance(error, RequestRefused) else exit_codes.FAILED


@contextmanager
def report_errors() -> Iterator[None]:
    """Print errors of Prescore, and of paths, as one line and exit; other errors keep their
    traceback.
    """
    try:
        yield
    except RunCanceled as error:
        print_note(f"stopped: {error.detail}")
        raise typer.Exit(exit_codes.INTERRUPTED) from None
    except KeyboardInterrupt:
        print_note("stopped")
        raise typer.Exit(exit_codes.INTERRUPTED) from None
    except PrescoreError as error:
        print_note(f"{error.code}: {error.detail}")
        raise typer.Exit(_code(error)) from None
    except PrescoreClientError as error:
        for line in request_errors.format_error(error).split("\n"):  # foreign parts are quoted
            print_note(line)
        raise typer.Exit(exit_codes.choose_code(error)) from None
    except OSError as error:
        if error.filename is None:  # it is of no path
            raise
        print_note(f"refused: {error.filename}: {error.strerror}")
        raise typer.Exit(exit_codes.REFUSED) from None


@contextmanager
def catch_interrupts() -> Iterator[Progress]:
    """A Progress that raises RunCanceled when it is called after the first Ctrl-C; the second
    Ctrl-C interrupts at once.
    """
    asked = False

    def ask(number: int, frame: object) -> None:  # noqa: ARG001  the signature of a handler
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    def heed(_done: int, _total: int) -> None:
        if asked:
            raise RunCanceled("the training was stopped")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield heed
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class ProgressSteps:
    """Steps of a command, one after another. `begin` starts a step and returns its Progress; `tell`
    prints a line above the bar.
    """

    begin: Callable[[str], Progress]
    tell: Callable[[str], None]


@contextmanager
def show_progress_steps(heed: Progress = ignore_progress) -> Iterator[ProgressSteps]:
    """Show a bar on a terminal; elsewhere, as in a CI's log, lines about each long step. Every
    Progress calls `heed` first.
    """
    if not sys.stderr.isatty():
        with ExitStack() as last:
            yield ProgressSteps(
                lambda what: _heeding(heed, watch_step(what, last, print_note)), print_note
            )
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def begin(what: str) -> Progress:
            bar.update(task, description=what, completed=0, total=None)
            return _heeding(heed, lambda done, total: bar.update(task, completed=done, total=total))

        def tell(line: str) -> None:  # in one piece, whatever the width of the terminal
            bar.console.print(plain_text.line(line), markup=False, soft_wrap=True)

        yield ProgressSteps(begin, tell)


def _heeding(heed: Progress, show: Progress) -> Progress:
    def report(done: int, total: int) -> None:
        heed(done, total)
        show(done, total)

    return report
