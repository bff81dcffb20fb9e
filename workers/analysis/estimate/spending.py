"""How wide an interval must be at each of several looks, so that it is valid for all of them
together.

The mean of the first n of N images in random order differs from the whole's by a Gaussian with a
variance in proportion to 1/n - 1/N, and what a later look adds is independent of the looks before
(a random walk in the information n N / (N - n)). The error of the whole sequence is spent look by
look, in proportion to the images seen; each look's critical value follows by integrating over the
walks that have stayed inside so far (Armitage, McPherson and Rowe 1969; Lan and DeMets 1983). What
a look spends depends only on the looks before it, so the number of looks need not be planned.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

ERROR = 0.05  # of all looks together
_NOMINAL = 0.04  # spent: real scores have heavy tails, and up to 1.3 times as many are outside
_GRID = 601  # points inside a look's limits
_WIDEST = 8.0  # standard errors: no limit is wider
_NEAR = 1e-3  # looks whose information differs by less count as one


def critical_values(looks: Sequence[int], images: int, error: float = _NOMINAL) -> list[float]:
    """Critical values in standard errors, for looks after these numbers of images, all fewer than
    `images`.
    """
    information = [n * images / (images - n) for n in looks]
    found: list[float] = []
    spent, last = 0.0, 0.0
    walk: _Walk | None = None
    for n, now in zip(looks, information, strict=True):
        if walk is not None and now - last < _NEAR * now:
            found.append(found[-1])
            continue
        allowed = error * n / images - spent
        spent += allowed
        kept = math.sqrt(last / now)
        found.append(_limit(walk, kept, allowed))
        walk = walk.after(kept, found[-1]) if walk else _Walk.begin(found[-1])
        last = now
    return found


@dataclass(frozen=True)
class _Walk:
    """The density of the standardised difference at a look, for walks that were always inside."""

    places: Floats
    density: Floats

    @classmethod
    def begin(cls, limit: float) -> Self:
        places = np.linspace(-limit, limit, _GRID)
        return cls(places, np.exp(-(places**2) / 2) / math.sqrt(2 * math.pi))

    def beyond(self, kept: float, limit: float) -> float:
        """The probability of being outside at the next look; `kept` is the correlation of both
        looks.
        """
        spread = math.sqrt(1 - kept**2)
        above = ndtr((kept * self.places - limit) / spread)
        below = ndtr((-kept * self.places - limit) / spread)
        return float(np.trapezoid(self.density * (above + below), self.places))

    def after(self, kept: float, limit: float) -> "_Walk":
        spread = math.sqrt(1 - kept**2)
        places = np.linspace(-limit, limit, _GRID)
        steps = (places[:, None] - kept * self.places) / spread
        kernel = np.exp(-(steps**2) / 2) / (spread * math.sqrt(2 * math.pi))
        density = np.asarray(np.trapezoid(kernel * self.density, self.places, axis=1))
        return _Walk(places, density)


def _limit(walk: _Walk | None, kept: float, allowed: float) -> float:
    if walk is None:
        return float(-ndtri(allowed / 2))
    if walk.beyond(kept, _WIDEST) >= allowed:
        return _WIDEST
    return float(brentq(lambda limit: walk.beyond(kept, limit) - allowed, 0.0, _WIDEST))
