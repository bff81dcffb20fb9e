"""Draws of a score: its distances from their mean in the first resamples of its images.

All systems' resamples draw the same images. So the draws of two systems tell how sure their
difference is, whichever two these are, and nothing else of them needs to be read.
"""

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

DRAWS = 256  # of a difference, the standard error is known to 1 / sqrt(2 * 256): 4.4 %
CRITICAL = 1.9693  # Student's t at 5 %, two-sided, for 255 degrees of freedom
DETECTABLE = 2.80158  # normal quantiles of 97.5 % and 80 %, in standard errors
AGREEMENT = 1e-4  # of the larger score; less is no difference, as in a comparison
_KIND = 1  # which images are drawn, and how draws are packed: those of two kinds tell nothing
_FORM = struct.Struct(f"<Bd{DRAWS}b")
_HEAD, _STEPS = struct.Struct("<Bd"), struct.Struct(f"<{DRAWS}b")
_NOUGHT = (0.0,) * DRAWS
_MOST = 127


def pack_draws(draws: Sequence[float]) -> bytes:
    """Draws, in steps of 1/127 of the largest one: 265 bytes."""
    mean = math.fsum(draws) / DRAWS
    left = [each - mean for each in draws]
    step = max(map(abs, left)) / _MOST
    return _FORM.pack(_KIND, step, *(_in_steps(each, step) for each in left))


def _in_steps(number: float, step: float) -> int:
    """Count steps, at most 127, where the smallest numbers have no digits for a quotient, too."""
    return max(-_MOST, min(_MOST, round(number / step))) if step else 0


class ScoreDraws(NamedTuple):
    """Draws, less their mean: `steps`, each times `step`. `square`: the sum of the steps' squares.

    They stay whole numbers, since a board reads thousands: a sum of products is 2 microseconds,
    and a product for each number 10.
    """

    step: float
    steps: tuple[int, ...]
    square: float

    @property
    def values(self) -> list[float]:
        return [self.step * each for each in self.steps]


def unpack_draws(packed: bytes) -> ScoreDraws | None:
    """Unpack draws; None for draws of another kind."""
    if len(packed) != _FORM.size or packed[0] != _KIND:
        return None
    _, step = _HEAD.unpack_from(packed)
    steps = _STEPS.unpack_from(packed, _HEAD.size)
    return ScoreDraws(step, steps, math.dist(steps, _NOUGHT) ** 2)


def compute_standard_error(one: ScoreDraws, other: ScoreDraws) -> float:
    """Compute the standard error of the difference of two scores, from the squares of steps: those
    of scores that are products of many probabilities, or very large, would be no numbers.
    """
    larger = max(one.step, other.step)
    if larger == 0:
        return 0.0
    a, b = one.step / larger, other.step / larger
    apart = math.dist(one.steps, other.steps) ** 2  # |x|^2 + |y|^2 - 2 xy
    left = a * a * one.square + b * b * other.square
    left -= a * b * (one.square + other.square - apart)
    return larger * math.sqrt(max(left, 0.0) / (DRAWS - 1))


def do_scores_differ(values: tuple[float, float], draws: tuple[ScoreDraws, ScoreDraws]) -> bool:
    """Tell whether two scores differ at 5 %."""
    apart = abs(values[0] - values[1])
    return not do_scores_agree(values) and apart > CRITICAL * compute_standard_error(*draws)


def do_scores_agree(values: tuple[float, float]) -> bool:
    """Tell whether two scores are equal but for rounding."""
    return abs(values[0] - values[1]) <= AGREEMENT * max(map(abs, values))


def compute_p(apart: float, error: float) -> float:
    """The probability of a difference this large in either direction, by Student's t for 255
    degrees of freedom: for an odd number of them it is a finite sum.
    """
    angle = math.atan2(apart, error * math.sqrt(DRAWS - 1))
    term = total = math.cos(angle)
    square = total**2
    for power in range(3, DRAWS - 1, 2):
        term *= (power - 1) / power * square
        total += term
    return max(0.0, 1 - 2 / math.pi * (angle + math.sin(angle) * total))
