"""`python -m workers doctor`: the workers' part of `prescore doctor`."""

from dataclasses import asdict

from service.contract import settings
from workers.cli.console import AsJson, errors, show, show_json


def doctor(as_json: AsJson = False) -> None:
    """Check torch, memory, Java and metrics: the workers' part of `prescore doctor`."""
    from workers.offline import doctor as engine

    with errors():
        found = engine.examine(settings.load())
    if as_json:
        show_json([asdict(finding) for finding in found])
        return
    for finding in found:
        show(f"{finding.status:11}  {finding.name}: {finding.found}")
