"""`python -m workers COMMAND`: the workers' commands without the console script."""

from dataclasses import asdict
from typing import Annotated

import typer

from service.contract import settings
from service.contract.findings import Finding, ignore_finding
from workers.cli.assets import assets
from workers.cli.check import check
from workers.cli.console import AsJson, print_json, print_lines, report_errors
from workers.cli.convert import convert
from workers.cli.judge import judge
from workers.cli.lab import lab
from workers.cli.verify import verify
from workers.cli.worker import worker


def doctor(
    as_json: AsJson = False,
    lines: Annotated[
        bool,
        typer.Option("--lines", help="Print each finding when it is there, as JSON in a line."),
    ] = False,
) -> None:
    """Check torch, memory, Java and metrics: the workers' part of `prescore doctor`."""
    from workers.offline import doctor as engine

    with report_errors():
        found = engine.examine_workers(settings.load_settings(), _tell if lines else ignore_finding)
    if lines:
        return
    if as_json:
        print_json([asdict(finding) for finding in found])
        return
    for finding in found:
        print_lines(f"{finding.status:11}  {finding.name}: {finding.found}")


def _tell(finding: Finding) -> None:
    print_json(asdict(finding))


def main() -> None:
    app = typer.Typer(
        name="python -m workers", no_args_is_help=True, pretty_exceptions_enable=False
    )
    for command in (check, doctor, judge, verify):
        app.command()(command)
    groups = {"assets": assets, "convert": convert, "lab": lab}
    for name, group in {**groups, "worker": worker}.items():
        app.add_typer(group, name=name)
    app()


main()
