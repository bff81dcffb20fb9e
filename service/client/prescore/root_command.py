"""The `prescore` command as its users see it: its commands in the order of a day's task, its usage
errors as plain lines.
"""

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from prescore import exit_codes, plain_text

PANELS = {
    "Runs": (
        *("submit", "watch", "gate", "list", "compare", "leaderboard"),
        *("status", "scores", "captions", "tokens", "cancel", "label", "delete"),
    ),
    "Datasets, and what metrics are worth on them": (
        *("datasets", "health", "probes", "correlations", "learned"),
    ),
    "On this machine, with no service": (
        *("check", "convert", "export", "score", "verify", "judge", "probe", "lab", "assets"),
    ),
    "The service": (
        *("doctor", "demo", "serve", "api", "worker", "janitor", "migrate", "keys"),
        *("backup", "restore", "webhooks", "audit"),
    ),
}
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}
_PLACES = list(_PANEL_OF)
_UsageError: Any = typer.BadParameter.__base__  # Typer has it from Click, or from its own copy


class RootCommand(TyperGroup):
    """Commands that no panel has, of other distributions, stand in the first one."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        known = [name for name in _PLACES if name in self.commands]
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
            _tell(error)
            code = error.exit_code
        except typer.Abort:
            typer.echo("stopped", err=True)
            code = exit_codes.INTERRUPTED
        sys.exit(code)


def _tell(error: Any) -> None:
    """An error in a line of its own, however long: paths and ids in it are copied from there."""
    said = error.format_message()
    if not said:  # a group without a command has shown its help
        return
    path = error.ctx.command_path if error.ctx else "prescore"
    typer.echo(plain_text.line(said), err=True)
    typer.echo(f"help: {path} --help", err=True)
