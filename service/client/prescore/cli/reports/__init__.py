"""What `prescore gate` writes for programs: report files, and a GitHub workflow's summary."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

from prescore.cli import console, gate_rows
from prescore.cli.outcomes import Outcome
from prescore.cli.reports import github, junit

Writer = Callable[[Path, Outcome], None]


@dataclass(frozen=True)
class Reports:
    junit: Path | None
    json: Path | None
    csv: Path | None

    def write(self, outcome: Outcome) -> None:
        for path, write in self._files():
            write(path, outcome)

    def _files(self) -> Iterator[tuple[Path, Writer]]:
        found = ((self.junit, _write_junit), (self.json, _write_json), (self.csv, _write_csv))
        return ((path, write) for path, write in found if path is not None)


def tell_github(outcome: Outcome, environment: Mapping[str, str]) -> None:
    """Write a GitHub workflow's summary, outputs and annotations. Annotations go to stderr, which
    the runner reads too, since stdout may be JSON.
    """
    if not environment.get("GITHUB_ACTIONS"):
        return
    for line in github.annotations(outcome):
        typer.echo(line, err=True)  # not `say`, since it is a command
    for name, written in (("STEP_SUMMARY", github.summary), ("OUTPUT", github.outputs)):
        if path := environment.get(f"GITHUB_{name}"):
            console.write(Path(path), written(outcome).encode("utf-8"), append=True)


def _write_junit(path: Path, outcome: Outcome) -> None:
    console.write(path, junit.written(outcome))


def _write_json(path: Path, outcome: Outcome) -> None:
    if outcome.evaluation is not None:
        text = outcome.evaluation.model_dump_json()
    else:
        asked = [gate.model_dump(mode="json") for gate in outcome.gates]
        error = {"detail": outcome.problem}
        text = json.dumps({"id": None, "verdict": None, "gates": asked, "error": error})
    console.write(path, f"{text}\n".encode())


def _write_csv(path: Path, outcome: Outcome) -> None:
    console.write_csv(path, gate_rows.Row._fields, gate_rows.rows(outcome.gates))
