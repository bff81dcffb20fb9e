"""`python -m workers doctor`: the workers' part of `prescore doctor`."""

from dataclasses import asdict
from typing import Annotated

import typer

from service.contract import settings
from service.contract.findings import Finding, ignore_finding
from workers.cli.console import AsJson, print_json, print_lines, report_errors


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
