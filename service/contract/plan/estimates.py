"""Estimates and forecasts of final scores: the task `estimate`, evaluations for a forecast, past
systems' scores for an order of images.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from service.contract.metrics import families
from service.contract.plan.tasks import Blob, Task
from service.contract.wording import count_noun

ESTIMATE = "estimate"
MOST_LOOKS = 40
ORDER = "order"  # a task: the order of images
FEWEST_SYSTEMS = 4  # fewer do not show how much systems differ on an image
MOST_SYSTEMS = 20
_PAST = "past"

Value = TypeVar("Value")
OrderHistory = Mapping[str, Sequence[str]]  # digests of past systems' scores, by family


def name_history(history: OrderHistory) -> dict[str, Blob]:
    """The inputs of an order by which it has past systems' scores."""
    return {
        f"{_PAST}.{family}.{place}": Blob(digest)
        for family, digests in history.items()
        for place, digest in enumerate(digests)
    }


def read_history(inputs: Mapping[str, Value]) -> dict[str, list[Value]]:
    """The values of those of an order's inputs that have past systems' scores, by family."""
    found: dict[str, list[Value]] = {}
    for name, value in inputs.items():
        if name.startswith(f"{_PAST}."):
            found.setdefault(name.split(".")[1], []).append(value)
    return found


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
    looked_at = list_estimated(named)
    if captions is None or ORDER not in captions.inputs or not looked_at:
        return None
    inputs: dict[str, Blob | Task] = {
        ORDER: captions.inputs[ORDER],
        "references": named["references"],
        **{f"baseline.{name}": Blob(past[name]) for name in looked_at if name in past},
    }
    shared: dict[str, Any] = {"families": looked_at}
    if differences:
        shared |= {"margins": list(differences), "tests": tests}
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


def list_estimated(named: Mapping[str, Task]) -> list[str]:
    """The families whose scores the plan's captions can estimate."""
    return [name for name in families.list_estimated_families() if _on_the_whole(named.get(name))]


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
            f"this split has {count_noun(evaluations, 'finished evaluation')} of other {of} with "
            "the same settings and kind of tokens; a forecast needs at least "
            f"{FEWEST_EVALUATIONS}"
        )
    if runs < FEWEST_RUNS:
        return (
            f"all {evaluations} finished evaluations on this split are of one training run, which "
            "does not show how much training runs differ; the label `run` tells them apart"
        )
    return None
