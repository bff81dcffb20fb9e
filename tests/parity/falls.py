"""Falls of trainings without any, and of trainings with one that was put in.

    PYTHONPATH=tests:service/client:. python -m parity.falls    prints the tables of the guide

Honest trainings rise to a score near 1, as an exponential, a power or a sigmoid; intervals are
those of the noise that is added. Trainings of one sweep have the same shape; ends and rates differ.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from service.runs.falls import FoundFall, find_falls
from service.runs.signal_noise import StepScore

SHAPES = ("exponential", "power", "sigmoid")
ERRORS = (0.003, 0.01, 0.025)  # standard errors, of scores that end near 1
JITTERS = (0.0, 0.02)  # standard deviations of checkpoints beyond the noise of images
LOSSES = (0.05, 0.1, 0.15, 0.2, 0.3)
OTHERS = (0, 1, 5)
_TRAININGS = 300
_BOUND = 1.959964


class Sweep(NamedTuple):
    """A kind of trainings that are made up. `spread`: how much ends and rates differ."""

    shape: str
    error: float
    jitter: float
    others: int
    spread: float = 0.1


def draw_scores(rng: random.Random, sweep: Sweep, steps: int) -> list[float]:
    """Draw the true scores of an honest training, with its jitter."""
    end = math.exp(sweep.spread * rng.gauss())
    rate = math.exp(sweep.spread * rng.gauss())
    curves = {
        "exponential": lambda x: 1 - math.exp(-4 * x),
        "power": lambda x: 1.1 * (1 - (1 + 8 * x) ** -0.9),
        "sigmoid": lambda x: 1 / (1 + math.exp(-14 * (x - 0.35))),
    }
    curve = curves[sweep.shape]
    return [
        end * curve(rate * (at + 1) / steps) + sweep.jitter * rng.gauss() for at in range(steps)
    ]


def measure(rng: random.Random, scores: Sequence[float], error: float) -> dict[float, StepScore]:
    """Measure scores on a set of images: each with noise, and its interval."""
    measured = [score + error * rng.gauss() for score in scores]
    return {
        float(at): StepScore(one, one - _BOUND * error, one + _BOUND * error)
        for at, one in enumerate(measured, start=1)
    }


def find_all(
    own: Mapping[float, StepScore], others: Mapping[str, Mapping[float, StepScore]]
) -> Iterator[FoundFall]:
    """Find falls at any time: as each checkpoint ends, and in hindsight."""
    for many in range(2, len(own) + 1):
        yield from find_falls(dict(list(own.items())[:many]), others)


def count_false_alarms(sweep: Sweep, seed: int, trainings: int = _TRAININGS) -> Counter[str]:
    """Count the checkpoints, and those that are flagged at any time, by kind."""
    rng, found = random.Random(seed), Counter[str]()
    for _ in range(trainings):
        steps = rng.randint(5, 20)
        own, *others = (
            measure(rng, draw_scores(rng, sweep, steps), sweep.error)
            for _ in range(1 + sweep.others)
        )
        falls = find_all(own, {str(at): one for at, one in enumerate(others)})
        flagged = {(fall.kind, fall.step) for fall in falls}
        found += Counter(kind for kind, _ in flagged)
        found["any"] += len({step for _, step in flagged})
        found["checkpoints"] += steps
    return found


def measure_detection(
    sweep: Sweep, loss: float, seed: int, trainings: int = _TRAININGS
) -> tuple[float, float]:
    """Measure the shares of checkpoints in the second half of the way that lose this share of their
    score, and are flagged at once, or at any time.
    """
    rng, at_once, found = random.Random(seed), 0, 0
    for _ in range(trainings):
        steps = rng.randint(6, 20)
        scores = [draw_scores(rng, sweep, steps) for _ in range(1 + sweep.others)]
        late = [at for at, one in enumerate(scores[0]) if 2 * one > max(scores[0])]
        at = rng.choice(late[1:-1] or late)
        scores[0][at] *= 1 - loss
        own, *others = (measure(rng, one, sweep.error) for one in scores)
        beside = {str(number): one for number, one in enumerate(others)}
        now = find_falls({step: one for step, one in own.items() if step <= at + 1}, beside)
        at_once += any(fall.step == at + 1 for fall in now)
        found += any(fall.step == at + 1 for fall in find_all(own, beside))
    return at_once / trainings, found / trainings


def _print_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in (heading, ["---"] * len(heading), *rows):
        print("|", " | ".join(row), "|")
    print()


def list_false_alarms() -> Iterator[Sequence[str]]:
    for shape in SHAPES:
        for jitter in JITTERS:
            for others in OTHERS:
                total = Counter[str]()
                for seed, error in enumerate(ERRORS):
                    total += count_false_alarms(Sweep(shape, error, jitter, others), seed)
                many = total["checkpoints"]
                shares = (f"{total[kind] / many:.2%}" for kind in ("step", "trend", "run", "any"))
                yield shape, f"{jitter:g}", str(others), f"{many:,}", *shares


def list_detections() -> Iterator[Sequence[str]]:
    for error in ERRORS:
        for others in OTHERS:
            cells = []
            for loss in LOSSES:
                found = [
                    measure_detection(Sweep(shape, error, 0.0, others), loss, 9) for shape in SHAPES
                ]
                cells.append(" / ".join(f"{fmean(each):.0%}" for each in zip(*found, strict=True)))
            yield f"{error:g}", str(others), *cells


def main() -> None:
    heading = "shape", "jitter", "others", "checkpoints", "step", "trend", "run", "any"
    _print_table(heading, list(list_false_alarms()))
    _print_table(("error", "others", *(f"{loss:.0%}" for loss in LOSSES)), list(list_detections()))


if __name__ == "__main__":
    main()
