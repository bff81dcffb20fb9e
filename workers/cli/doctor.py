"""`python -m workers doctor`: what the engine finds on this machine."""

import json
from dataclasses import asdict

import typer

from service.contract import settings
from workers.cli.console import AsJson, errors


def doctor(as_json: AsJson = False) -> None:
    """Say what the engine finds on this machine: a part of what `prescore doctor` says."""
    from workers.offline import doctor as engine

    with errors():
        found = engine.examine(settings.load())
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in found]))
        return
    for finding in found:
        typer.echo(f"{finding.status:11}  {finding.name}: {finding.found}")
