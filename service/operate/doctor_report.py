"""Report of `prescore doctor`, for people and for programs."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prescore import plain_text
from service.contract.findings import Finding

_COLOURS = {"ok": "green", "warning": "yellow", "unavailable": "red"}


def print_finding(finding: Finding) -> None:
    """Print a finding at once on a terminal: Java may take a minute. A log has the table."""
    if not sys.stderr.isatty():
        return
    line = plain_text.line(f"{finding.status:11}  {finding.name}: {finding.found}")
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def is_fit(found: Sequence[Finding]) -> bool:
    """True if `prescore serve` works here."""
    return not _missing(found)


def print_findings(found: Sequence[Finding], *, as_json: bool) -> None:
    if as_json:
        document = {"fit": is_fit(found), "findings": [asdict(finding) for finding in found]}
        sys.stdout.write(plain_text.json_line(json.dumps(document)) + "\n")
        return
    console = Console()
    console.print(_table(found))
    missing = ", ".join(_missing(found))
    verdict = f"does not work here: see {missing}" if missing else "works here"
    console.print(f"`prescore serve` {verdict}.", markup=False)


def _missing(found: Sequence[Finding]) -> list[str]:
    return [each.name for each in found if each.needed and each.status == "unavailable"]


def _table(found: Sequence[Finding]) -> Table:
    table = Table("", "", "what was found, and what to do about it")
    for finding in found:
        status = Text(finding.status, _COLOURS[finding.status])
        text = _plain(finding.found)
        if finding.advice:
            text.append("\n→ ").append(_plain(finding.advice))
        table.add_row(status, _plain(finding.name), text)
    return table


def _plain(text: str) -> Text:
    return Text(plain_text.quoted(text), overflow="fold")
