"""What a benchmark measures, and the tables of README.md that keep it."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

README = Path(__file__).resolve().parent / "README.md"
_TOLD = re.compile(r"(^.+\n)*\n(^\|.*\n)+", re.MULTILINE)  # a paragraph and a table


@dataclass(frozen=True)
class Row:
    what: str
    seconds: float
    baseline: str
    baseline_seconds: float
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.baseline_seconds / self.seconds


def seconds(task: Callable[[], object], repeat: int = 1) -> float:
    """The best of `repeat` runs."""
    best = float("inf")
    for _ in range(repeat):
        _synchronise()
        began = time.perf_counter()
        task()
        _synchronise()
        best = min(best, time.perf_counter() - began)
    return best


def processor_seconds(task: Callable[[], object]) -> float:
    """Seconds of this process on all cores: the same on a machine that others use too."""
    began = time.process_time()
    task()
    return time.process_time() - began


def _synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def table(rows: Sequence[Row]) -> str:
    lines = ["| | seconds | baseline | seconds | ratio | |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.what} | {row.seconds:.3g} | {row.baseline} | {row.baseline_seconds:.3g} "
        f"| {row.ratio:.3g} | {row.note} |"
        for row in rows
    ]
    return "\n".join(lines)


def record(heading: str, told: str) -> None:
    """Replaces a section's table in README.md, and the paragraph before it; or adds the section."""
    text = README.read_text(encoding="utf-8")
    if f"## {heading}\n" not in text:
        text += f"\n## {heading}\n\n"
    before, found, after = text.partition(f"## {heading}\n")
    section, *others = after.split("\n## ")
    old = _TOLD.search(section)
    start, end = old.span() if old else (1, 1)
    section = f"{section[:start]}{told}\n{section[end:]}"
    README.write_text("\n## ".join([before + found + section, *others]), encoding="utf-8")
