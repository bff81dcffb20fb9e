"""Two ways to fit a metric's value to a predictor; each returns a curve that gives values at new
places.

A curve never falls, because a better predictor should mean a better value: a relation of the wrong
sign becomes a flat curve, which is no better than no predictor.
"""

from collections.abc import Callable, Mapping

import numpy as np
from scipy import optimize

from workers.analysis.forecasting.history import Floats

Curve = Callable[[Floats], Floats]
Fit = Callable[[Floats, Floats, Floats], Curve]  # places, values, weights

_SAME = 1e-12


def line(places: Floats, values: Floats, weights: Floats) -> Curve:
    share = weights / weights.sum()
    middle, level = float(share @ places), float(share @ values)
    spread = float(share @ (places - middle) ** 2)
    if spread <= _SAME * max(1.0, middle**2):
        return lambda at: np.full(len(at), level)
    slope = max(0.0, float(share @ ((places - middle) * (values - level))) / spread)
    return lambda at: level + slope * (at - middle)


def monotone(places: Floats, values: Floats, weights: Floats) -> Curve:
    """Isotonic regression, linear between its points and constant outside them."""
    distinct, of = np.unique(places, return_inverse=True)
    weight = np.bincount(of, weights)
    means = np.bincount(of, weights * values) / weight
    rising = optimize.isotonic_regression(means, weights=weight).x
    return lambda at: np.interp(at, distinct, rising)


FITS: Mapping[str, Fit] = {"line": line, "monotone": monotone}
