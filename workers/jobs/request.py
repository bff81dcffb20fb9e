"""The arguments and results of tasks: files, parameters and summaries."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from service.contract.formats.bundles import files
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress


@dataclass(frozen=True)
class JobRequest:
    """The arguments of a task: checked local files by the names of its inputs, and parameters."""

    inputs: Mapping[str, Path]
    digests: Mapping[str, str]
    parts: Sequence[Path]
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class JobResult:
    """`write` writes the result to a file; `summary` is stored in the database."""

    write: Callable[[Path], object]
    summary: BaseModel | None = None  # of the kind's model in service.contract.results


Job = Callable[[JobRequest, Toolbox, Progress], JobResult]


def read_pairs(path: Path) -> tuple[list[int], list[str]]:
    """Read a captions file: places in the split, and captions."""
    pairs = json.loads(path.read_text("utf-8"))
    return [place for place, _ in pairs], [caption for _, caption in pairs]


def read_references(request: JobRequest) -> Sequence[Sequence[str]]:
    """Read the references of a split, or of a part of it."""
    items = files.read_captions_split(request.inputs["dataset"], request.parameters["split"])
    start, stop = request.parameters.get("images", (0, len(items)))
    return [item.references for item in items[start:stop]]


def make_summary_result(summary: BaseModel) -> JobResult:
    """A result whose file is its summary as JSON."""
    return JobResult(lambda path: write_json(path, summary.model_dump(exclude={"draws"})), summary)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
