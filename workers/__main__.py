"""`python -m workers COMMAND`: the workers' commands where the console script is not at hand."""

import typer

from workers import commands


def main() -> None:
    app = typer.Typer(
        name="python -m workers", no_args_is_help=True, pretty_exceptions_enable=False
    )
    app.command("check")(commands.check)
    app.command("probe")(commands.probe)
    app.command("score")(commands.score)
    app.command("doctor")(commands.doctor)
    app.command("judge")(commands.judge)
    app.add_typer(commands.assets, name="assets")
    app.add_typer(commands.convert, name="convert")
    app.add_typer(commands.worker, name="worker")
    app.add_typer(commands.lab, name="lab")
    app.add_typer(commands.learned, name="learned")
    app()


main()
