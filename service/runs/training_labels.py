"""Labels by which evaluations are checkpoints of trainings."""

import math
from collections.abc import Mapping

RUN, STEP, EPOCH, SWEEP = "run", "step", "epoch", "sweep"


def read_step(text: str) -> float | None:
    try:
        step = float(text)
    except ValueError:
        return None
    return step if 0 <= step < math.inf else None


def find_step(marks: Mapping[str, str]) -> float | None:
    """Find the step of a checkpoint: the number of its label `step`, else of `epoch`."""
    return read_step(marks.get(STEP, marks.get(EPOCH, "")))
