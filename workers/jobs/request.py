"""What a kind of work is given, and what it gives back: files, and a summary."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from workers.jobs.toolbox import Toolbox
from workers.progress import Progress


@dataclass(frozen=True)
class Request:
    """What a kind's function works on: checked local files, by the names of its inputs."""

    inputs: Mapping[str, Path]
    digests: Mapping[str, str]
    parts: Sequence[Path]
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """`write` puts the result into a file; `summary` is what the record itself keeps."""

    write: Callable[[Path], None]
    summary: BaseModel | None = None  # as service.contract.results has one for its kind


Job = Callable[[Request, Toolbox, Progress], Result]


def read_pairs(path: Path) -> tuple[list[int], list[str]]:
    """Places in the split, and their captions."""
    pairs = json.loads(path.read_text("utf-8"))
    return [place for place, _ in pairs], [caption for _, caption in pairs]


def summed(summary: BaseModel) -> Result:
    """What is its own file."""
    return Result(lambda path: write_json(path, summary.model_dump()), summary)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
