"""The `prescore` command: its commands in the order of a day's work, usage errors as plain lines.

Other distributions add commands by entry points of one group; where those are not installed, stubs
say how to install them.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from prescore import exit_codes, plain_text
from prescore.cli.captions import captions
from prescore.cli.changes import audit, delete, label
from prescore.cli.compare import compare
from prescore.cli.correlations import correlations
from prescore.cli.datasets import datasets
from prescore.cli.export import export
from prescore.cli.gate import gate
from prescore.cli.health import health
from prescore.cli.leaderboard import leaderboard
from prescore.cli.learned import learned
from prescore.cli.lists import list_
from prescore.cli.probes import probe, probes
from prescore.cli.runs import cancel, scores, status, watch
from prescore.cli.score import score
from prescore.cli.signals import signal
from prescore.cli.submit import submit
from prescore.cli.sweeps import rank
from prescore.cli.tokens import tokens
from prescore.cli.webhooks import webhooks
from prescore.client.local_service import INSTALL

GROUP = "prescore.commands"
COMMANDS = (
    *(submit, score, status, watch, cancel, scores, captions, tokens, gate, compare, leaderboard),
    *(correlations, signal, rank, health, probe, probes, export, label, delete, audit),
)
OTHER_COMMANDS: Sequence[str] = (  # of the other distribution
    *("api", "assets", "backup", "check", "convert", "demo", "doctor", "janitor", "keys"),
    *("judge", "lab", "migrate", "record", "restore", "serve", "verify", "worker"),
)
PANELS = {
    "Runs": (
        *("submit", "watch", "gate", "list", "compare", "leaderboard"),
        *("status", "scores", "captions", "tokens", "export", "cancel", "label", "delete"),
    ),
    "Datasets, and what metrics are worth on them": (
        *("datasets", "health", "probes", "correlations", "signal", "rank", "learned"),
    ),
    "On this machine, with no service": (
        *("check", "convert", "record", "score", "verify", "judge", "probe", "lab"),
        "assets",
    ),
    "The service": (
        *("doctor", "demo", "serve", "api", "worker", "janitor", "migrate", "keys"),
        *("backup", "restore", "webhooks", "audit"),
    ),
}
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}
_UsageError: Any = typer.BadParameter.__base__  # Typer has it from Click, or from its own copy
_ANY_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


class RootCommand(TyperGroup):
    """Commands that no panel has, of other distributions, stand in the first one."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        known = [name for name in _PANEL_OF if name in self.commands]
        self.commands = {
            name: self.commands[name] for name in dict.fromkeys([*known, *self.commands])
        }
        for name, command in self.commands.items():
            command.rich_help_panel = _PANEL_OF.get(name)  # type: ignore[attr-defined]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *more: Any,
        standalone_mode: bool = True,
        **named: Any,
    ) -> Any:
        named["standalone_mode"] = False
        if not standalone_mode:
            return super().main(args, prog_name, *more, **named)
        try:
            code = super().main(args, prog_name, *more, **named)
        except _UsageError as error:
            _print_usage_error(error)
            code = error.exit_code
        except typer.Abort:
            typer.echo("stopped", err=True)
            code = exit_codes.INTERRUPTED
        sys.exit(code)


def _print_usage_error(error: Any) -> None:
    """Print an error in one line, however long: paths and ids in it are copied from there."""
    message = error.format_message()
    if not message:  # a group without a command has shown its help
        return
    path = error.ctx.command_path if error.ctx else "prescore"
    typer.echo(plain_text.line(message), err=True)
    typer.echo(f"help: {path} --help", err=True)


def build() -> typer.Typer:
    """Build the `prescore` command with every subcommand that is installed."""
    app = typer.Typer(
        name="prescore",
        cls=RootCommand,
        help="Scores image captioners: pre-gen scores in seconds, post-gen scores as they come.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={
            "help_option_names": ["-h", "--help"],
            "token_normalize_func": lambda name: "metrics" if name == "metric" else name,
        },
    )
    app.callback()(_define_root)
    app.command(name="list")(list_)
    for command in COMMANDS:
        app.command()(command)
    app.add_typer(datasets, name="datasets")
    app.add_typer(learned, name="learned")
    app.add_typer(webhooks, name="webhooks")
    own = {command.__name__ for command in COMMANDS}  # `export` calls the other one itself
    others = [entry for entry in entry_points(group=GROUP) if entry.name not in own]
    entries = sorted(others, key=lambda entry: entry.name)
    for entry in entries:
        _add_command(app, entry)
    installed = {entry.name for entry in entries}
    for name in OTHER_COMMANDS:
        if name not in installed:
            _add_stub(app, name)
    return app


def _define_root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=lambda wanted: _print_version(wanted=wanted), is_eager=True
        ),
    ] = False,
) -> None:
    """Scores image captioners: pre-gen scores in seconds, post-gen scores as they come."""


def _print_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"prescore-client {version('prescore-client')}")
        raise typer.Exit


def _add_command(app: typer.Typer, entry: EntryPoint) -> None:
    try:
        command: Any = entry.load()
    except ImportError as error:
        _add_stub(app, entry.name, str(error))
        return
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=entry.name)
    else:
        app.command(entry.name)(command)


def _add_stub(app: typer.Typer, name: str, reason: str = "") -> None:
    """Add a command that says how to install it, whatever its arguments are. The help shows the
    `reason`, where a command should be there and is not.
    """
    shown = {"help": f"Not installed: {reason}."} if reason else {"hidden": True}
    app.command(name, context_settings=_ANY_ARGUMENTS, **shown)(_build_stub(name, reason))


def _build_stub(name: str, reason: str) -> Callable[[], None]:
    def stub() -> None:
        typer.echo(
            f"prescore {name} needs packages that are not installed"
            f"{f' ({reason})' if reason else ''}.\n"
            f"Install them from a clone of Prescore: {INSTALL}",
            err=True,
        )
        raise typer.Exit(2)

    return stub
