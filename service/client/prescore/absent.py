"""The commands of the other distribution: where it is not installed, they say how to install it."""

from collections.abc import Callable, Sequence

import typer

COMMANDS: Sequence[str] = (
    *("api", "assets", "backup", "check", "convert", "demo", "doctor", "export", "janitor", "keys"),
    *("judge", "lab", "migrate", "restore", "serve", "verify", "worker"),
)
_INSTALL = "pip install -c deploy/constraints.txt ./service/client '.[service,workers]'"
_ANY_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def add(app: typer.Typer, name: str, why: str = "") -> None:
    """Add a command that says how to install it, whatever its arguments are; `why` it is not there
    is shown in the help, where a command that should be there and is not has a place.
    """
    stub = _stub(name, why)
    told = {"help": f"Not installed: {why}."} if why else {"hidden": True}
    app.command(name, context_settings=_ANY_ARGUMENTS, **told)(stub)


def _stub(name: str, why: str) -> Callable[[], None]:
    found = f" ({why})" if why else ""

    def stub() -> None:
        typer.echo(
            f"prescore {name} needs packages that are not installed{found}.\n"
            f"Install them from a clone of Prescore: {_INSTALL}",
            err=True,
        )
        raise typer.Exit(2)

    return stub
