"""The `prescore` command. Other distributions add commands by entry points of one group."""

from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated, Any

import typer

from prescore import absent
from prescore.cli.datasets import datasets
from prescore.cli.gating import gate
from prescore.cli.life.changing import audit, delete, label
from prescore.cli.life.webhooks import webhooks
from prescore.cli.reading.captions import captions
from prescore.cli.reading.comparing import compare
from prescore.cli.reading.listing import list_
from prescore.cli.reading.tokens import tokens
from prescore.cli.runs import cancel, scores, status, watch
from prescore.cli.score import score
from prescore.cli.splits.boards import leaderboard
from prescore.cli.splits.correlations import correlations
from prescore.cli.splits.health import health
from prescore.cli.splits.learned import learned
from prescore.cli.splits.probes import probe, probes
from prescore.cli.submitting import submit
from prescore.root_command import RootCommand

COMMANDS = (
    *(submit, score, status, watch, cancel, scores, captions, tokens, gate, compare, leaderboard),
    *(correlations, health, probe, probes, label, delete, audit),
)
GROUP = "prescore.commands"


def build() -> typer.Typer:
    """The `prescore` command with every subcommand that is installed."""
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
    app.callback()(_root)
    app.command(name="list")(list_)
    for command in COMMANDS:
        app.command()(command)
    app.add_typer(datasets, name="datasets")
    app.add_typer(learned, name="learned")
    app.add_typer(webhooks, name="webhooks")
    entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    for entry in entries:
        _add(app, entry)
    there = {entry.name for entry in entries}
    for name in absent.COMMANDS:
        if name not in there:
            absent.add(app, name)
    return app


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=lambda asked: _print_version(asked=asked), is_eager=True
        ),
    ] = False,
) -> None:
    """Scores image captioners: pre-gen scores in seconds, post-gen scores as they come."""


def _print_version(*, asked: bool) -> None:
    if asked:
        typer.echo(f"prescore-client {version('prescore-client')}")
        raise typer.Exit


def _add(app: typer.Typer, entry: EntryPoint) -> None:
    try:
        command: Any = entry.load()
    except ImportError as error:
        absent.add(app, entry.name, str(error))
        return
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=entry.name)
    else:
        app.command(entry.name)(command)
