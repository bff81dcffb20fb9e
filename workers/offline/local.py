"""Runs works in this process, one after the other, without a service: the same plans and jobs.

Results that depend only on a dataset are kept for the next time, by the key of their work.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from service.contract.errors import PrescoreError
from service.contract.plan.planning import Plan
from service.contract.plan.works import Blob, Work, reference
from workers import jobs
from workers.files import atomic
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress, silent

if TYPE_CHECKING:
    from workers.jobs.request import Result

Told = Callable[[str], Progress]  # a work's name -> the Progress to report to


@dataclass(frozen=True)
class Outcome:
    """The result of a work: a file with its summary, or an error."""

    path: Path | None = None
    summary: BaseModel | None = None
    error: PrescoreError | None = None


def run(
    plan: Plan,
    blobs: Mapping[str, Path],
    toolbox: Toolbox,
    keep: Path,
    told: Told,
    folder: Path,
) -> dict[str, Outcome]:
    """Run all works of a plan; returns their outcomes by name. A failed work does not stop others.

    `blobs`: input files by digest; `folder`: for results; `keep`: for results that depend only on
    the dataset.
    """
    keep.mkdir(parents=True, exist_ok=True)
    bench = _LocalRunner(blobs, toolbox, keep, folder)
    for name, work in plan.named.items():
        for step in work.everything():
            bench.do(step, name if step.kind == work.kind else step.kind, told)
    return {name: bench.outcomes[work.key] for name, work in plan.named.items()}


class _LocalRunner:
    def __init__(
        self, blobs: Mapping[str, Path], toolbox: Toolbox, keep: Path, folder: Path
    ) -> None:
        self._blobs = blobs
        self._toolbox = toolbox
        self._keep = keep
        self._folder = folder
        self.outcomes: dict[str, Outcome] = {}
        self._told: tuple[str, Progress] = ("", silent)

    def do(self, work: Work, name: str, told: Told) -> None:
        """Run a work once; the works that it needs must have run. What is there is not told."""
        if work.key in self.outcomes:
            return
        path = (self._keep if _of_dataset_alone(work) else self._folder) / work.key
        needed = [self.outcomes[need.key] for need in work.needs]
        failed = next((outcome for outcome in needed if outcome.error), None)
        if path.is_file():
            self.outcomes[work.key] = Outcome(path)
        else:
            self.outcomes[work.key] = failed or self._tried(work, path, self._telling(name, told))

    def _telling(self, name: str, told: Told) -> Progress:
        """Shards that follow one another have one progress."""
        if self._told[0] != name:
            self._told = (name, told(name))
        return self._told[1]

    def _tried(self, work: Work, path: Path, progress: Progress) -> Outcome:
        request = self._request(work)
        try:
            done: list[Result] = []
            atomic.write(
                path,
                lambda partial: done.append(
                    jobs.run({**request, "result": str(partial)}, self._toolbox, progress)
                ),
            )
        except PrescoreError as error:
            return Outcome(error=error)
        return Outcome(path, done[0].summary)

    def _request(self, work: Work) -> dict[str, Any]:
        inputs = {name: reference(value) for name, value in work.inputs.items()}
        paths = {reference(value): self._path(value) for value in work.inputs.values()}
        parts = {reference(part): self._path(part) for part in work.parts}
        return {
            "kind": work.kind,
            "inputs": inputs,
            "parts": list(parts),
            "parameters": dict(work.parameters),
            "files": paths | parts,
        }

    def _path(self, value: Blob | Work) -> str:
        if isinstance(value, Blob):
            return str(self._blobs[value.digest])
        path = self.outcomes[value.key].path
        assert path is not None
        return str(path)


def _of_dataset_alone(work: Work) -> bool:
    return all(
        name == "dataset" if isinstance(value, Blob) else _of_dataset_alone(value)
        for name, value in work.inputs.items()
    )
