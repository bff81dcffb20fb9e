"""The `prescore` command for tests that call it in this process, built once: to build it takes
twice as long as most commands do.
"""

from collections.abc import Callable
from functools import cache

import typer
from typer import testing

from prescore import commands

# Typer's runner builds Click's command at each call. A command keeps nothing of a call.
testing._get_command = cache(testing._get_command)


@cache
def prescore() -> typer.Typer:
    """With every command that is installed."""
    return commands.build()


@cache
def _alone(command: Callable[..., None]) -> typer.Typer:
    app = typer.Typer()
    app.command()(command)
    return app


def invoke(command: Callable[..., None], *arguments: object) -> testing.Result:
    """What this command alone says to these arguments."""
    return testing.CliRunner().invoke(_alone(command), [*map(str, arguments)])
