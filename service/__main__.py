"""`python -m service COMMAND`: the service's commands without the console script."""

import typer

from service.operate import commands, keys
from service.operate.backups.commands import backup, restore

app = typer.Typer(name="python -m service", no_args_is_help=True, pretty_exceptions_enable=False)
for command in (
    commands.serve,
    commands.api,
    commands.janitor,
    commands.demo,
    commands.openapi,
    commands.migrate,
    commands.doctor,
    backup,
    restore,
):
    app.command()(command)
app.add_typer(keys.app, name="keys")
app()
