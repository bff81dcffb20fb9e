"""A score's draws: how far from their mean it came out in the first resamples of its images.

All systems' resamples draw the same images. So the draws of two systems tell how sure their
difference is, whichever two these are, and nothing else of them needs to be read.
"""

import math
import struct
from collections.abc import Sequence

DRAWS = 256  # of a difference, the standard error is known to 1 / sqrt(2 * 256): 4.4 %
CRITICAL = 1.9693  # Student's t at 5 %, two-sided, for 255 degrees of freedom
AGREEMENT = 1e-4  # of the larger score; less is no difference, as in a comparison
_KIND = 1  # which images are drawn, and how draws are packed: those of two kinds tell nothing
_FORM = struct.Struct(f"<Bd{DRAWS}b")
_MOST = 127


def pack(draws: Sequence[float]) -> bytes:
    """Draws, in steps of 1/127 of the largest one: 265 bytes."""
    mean = math.fsum(draws) / DRAWS
    left = [each - mean for each in draws]
    step = max(map(abs, left)) / _MOST
    return _FORM.pack(_KIND, step, *(round(each / step) if step else 0 for each in left))


def unpack(packed: bytes) -> list[float] | None:
    """None for draws of another kind."""
    if len(packed) != _FORM.size or packed[0] != _KIND:
        return None
    _, step, *steps = _FORM.unpack(packed)
    return [step * each for each in steps]


def standard_error(one: Sequence[float], other: Sequence[float]) -> float:
    """Of the difference of two scores."""
    return math.dist(one, other) / math.sqrt(DRAWS - 1)


def differ(values: tuple[float, float], draws: tuple[Sequence[float], Sequence[float]]) -> bool:
    """Whether two scores differ at 5 %."""
    apart = abs(values[0] - values[1])
    if apart <= AGREEMENT * max(map(abs, values)):
        return False
    return apart > CRITICAL * standard_error(*draws)
