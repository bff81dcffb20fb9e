"""`python -m workers COMMAND`: the workers' commands without the console script."""

import typer

from workers.cli.assets import assets
from workers.cli.check import check
from workers.cli.convert import convert
from workers.cli.doctor import doctor
from workers.cli.judge import judge
from workers.cli.lab import lab
from workers.cli.record import record
from workers.cli.verify import verify
from workers.cli.worker import worker


def main() -> None:
    app = typer.Typer(
        name="python -m workers", no_args_is_help=True, pretty_exceptions_enable=False
    )
    for command in (check, doctor, judge, record, verify):
        app.command()(command)
    groups = {"assets": assets, "convert": convert, "lab": lab}
    for name, group in {**groups, "worker": worker}.items():
        app.add_typer(group, name=name)
    app()


main()
