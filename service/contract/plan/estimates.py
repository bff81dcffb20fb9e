"""Estimates and forecasts of final scores: the task `estimate`, evaluations for a forecast."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from service.contract.metrics import families
from service.contract.plan.tasks import Blob, Task
from service.contract.wording import count_noun

ESTIMATE = "estimate"
MOST_LOOKS = 40


def plan_estimate(
    named: Mapping[str, Task],
    past: Mapping[str, str],
    differences: Sequence[str] = (),
    tests: int = 0,
) -> Task | None:
    """Plan the task that estimates the final scores of a plan's `named` tasks, with a part for each
    look at the captions decoded so far; None where nothing can be estimated.

    `past`: the baseline's scores of single captions, by family; `differences`: the metrics whose
    difference from it is estimated, for so many `tests` together. Captions decoded in the split's
    order get no estimates, since some of them do not represent all.
    """
    captions = named.get("captions")
    looked_at = [
        name for name in families.list_estimated_families() if _on_the_whole(named.get(name))
    ]
    if captions is None or "order" not in captions.inputs or not looked_at:
        return None
    inputs: dict[str, Blob | Task] = {
        "order": captions.inputs["order"],
        "references": named["references"],
        **{f"baseline.{name}": Blob(past[name]) for name in looked_at if name in past},
    }
    shared: dict[str, Any] = {"families": looked_at}
    if differences:
        shared |= {"differences": list(differences), "tests": tests}
    each = math.ceil(len(captions.parts) / MOST_LOOKS)
    looks: list[Task] = []
    for start in range(0, len(captions.parts), each):
        batch = captions.parts[start : start + each]
        since: dict[str, Blob | Task] = {f"captions{at}": part for at, part in enumerate(batch)}
        if looks:
            since["before"] = looks[-1]
        span = [batch[0].parameters["images"][0], batch[-1].parameters["images"][1]]
        looks.append(Task("look", {**inputs, **since}, {**shared, "images": span}))
    whole = {**inputs, "captions": captions}
    return Task("look", whole, shared, tuple(looks))


def _on_the_whole(task: Task | None) -> bool:
    """Tell whether a task scores a part of the captions as it scores all of them."""
    return task is not None and "idf" not in task.parameters


FEWEST_EVALUATIONS = 8
FEWEST_RUNS = 2  # one run alone does not show how much runs differ
PREDICTORS = ("perplexity", "mean_join_normcount_filter0", "mean_max_normcount_prefix0")


def explain_too_few(evaluations: int, runs: int, of: str = "checkpoints") -> str | None:
    """Why so many evaluations and runs are too few for a forecast; None where they are enough."""
    if evaluations < FEWEST_EVALUATIONS:
        return (
            f"{count_noun(evaluations, 'finished evaluation')} of other {of} on this split, "
            f"computed in the same way; at least {FEWEST_EVALUATIONS} are needed"
        )
    if runs < FEWEST_RUNS:
        return (
            f"all {evaluations} finished evaluations on this split are of one training run, which "
            "does not show how much runs differ; the label `run` tells runs apart"
        )
    return None
