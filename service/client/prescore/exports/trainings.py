"""Runs of experiment trackers: evaluations of one training are one run with a history by step. A
tracker's package is imported only where its format is written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

from prescore.errors import InvalidArgument
from prescore.exports.finished_runs import FinishedRun

RUN, STEP = "run", "step"  # labels, as prescore.watch sets them
MOST_STEP = 2**53  # trackers keep it as a number of JSON


@dataclass
class Training:
    """Evaluations of one split by step; one without a step is alone, at step 0."""

    name: str
    by_step: dict[int, FinishedRun] = field(default_factory=dict)

    @cached_property
    def steps(self) -> list[tuple[int, FinishedRun]]:
        return sorted(self.by_step.items())

    @property
    def first(self) -> FinishedRun:
        return self.steps[0][1]

    @property
    def last(self) -> FinishedRun:
        return self.steps[-1][1]

    def find_common_facts(self) -> dict[str, str]:
        """Facts that all its evaluations have; those of the scores by `signature/METRIC`."""
        facts = [_list_facts(run) for _, run in self.steps]
        shared = set(facts[0].items()).intersection(*(each.items() for each in facts))
        return {name: text for name, text in facts[0].items() if (name, text) in shared}


def group_trainings(runs: Iterable[FinishedRun]) -> list[Training]:
    """Group runs by split and label `run`. A second evaluation of a step is of a second group."""
    groups: dict[tuple[str, ...], Training] = {}
    seen: Counter[tuple[str, str, int]] = Counter()
    for run in runs:
        one = run.evaluation
        step = read_step(one.labels)
        name = replace_halves(one.labels.get(RUN, ""))
        if step is None or not name:
            groups[one.id,] = Training(name or one.id, {step or 0: run})
            continue
        place = str(one.dataset), name, step
        key = str(one.dataset), name, str(seen[place])
        seen[place] += 1
        groups.setdefault(key, Training(name)).by_step[step] = run
    return list(groups.values())


def read_step(labels: Mapping[str, str]) -> int | None:
    """The label `step`, where it is a whole number from 0 on that a tracker keeps exactly."""
    text = labels.get(STEP, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 17):
        return None
    return step if (step := int(text)) <= MOST_STEP else None


def list_numbers(run: FinishedRun) -> dict[str, float]:
    """Scores by metric, and the ends of their intervals by `METRIC/low` and `METRIC/high`."""
    intervals = {
        f"{name}/{end}": bound
        for name in run.values
        if (interval := run.scores[name].interval) is not None
        for end, bound in zip(("low", "high"), interval, strict=True)
    }
    return {**run.values, **intervals}


def _list_facts(run: FinishedRun) -> dict[str, str]:
    one = run.evaluation
    facts = {
        "evaluation": one.id,
        "dataset": str(one.dataset),
        "dataset_digest": one.dataset.digest,
        "checkpoint": one.checkpoint,
        "columns": one.columns,
        "prompt": one.prompt,
        "verdict": one.verdict,
        "note": one.note,
        **{f"label/{name}": value for name, value in one.labels.items()},
        **{f"signature/{name}": score.signature for name, score in run.scores.items()},
    }
    return {replace_halves(name): replace_halves(text) for name, text in facts.items() if text}


def replace_halves(text: str) -> str:
    """Replace halves of characters, which cannot be written as UTF-8, by `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def import_peer(module: str, extra: str) -> Any:
    """Import a module of a tracker. Raise InvalidArgument, which names the extra, without it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise InvalidArgument(
            f"expected the package {error.name}, found none: pip install 'prescore-client[{extra}]'"
        ) from None
