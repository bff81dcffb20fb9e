"""Whether a predictor ranks evaluations as a metric does: Spearman's rho, over all and within sets.

Over all evaluations, a predictor reaches a high rho if it only tells early checkpoints from late
ones, or if architectures happen to be in the same order. Within a set (a training run; or one
architecture, if runs have one evaluation each) the predictor has to rank evaluations that differ in
nothing else.
"""

import numpy as np

from workers.analysis.forecasting.history import Floats, History, Ints

_SAME = 1e-12


def spearman(left: Floats, right: Floats) -> float | None:
    """Spearman's rho; None if one side is constant."""
    return _correlation(_centred_ranks(left), _centred_ranks(right))


def within_sets(left: Floats, right: Floats, sets: Ints) -> float | None:
    """Spearman's rho with ranks taken within each set; a set of one evaluation says nothing."""
    ranks = [
        (_centred_ranks(left[sets == at]), _centred_ranks(right[sets == at])) for at in set(sets)
    ]
    sides = (np.concatenate([pair[side] for pair in ranks]) for side in (0, 1))
    return _correlation(*sides)


def comparable_sets(history: History) -> Ints:
    """Sets are runs; they are architectures if most evaluations are the only one of their run."""
    sizes = np.bincount(history.runs)[history.runs]
    return history.architectures if (sizes == 1).mean() > 0.5 else history.runs


def _centred_ranks(values: Floats) -> Floats:
    """Ranks as shares of their set, less their mean; ties get the middle rank. So an evaluation in
    a large set does not weigh more.
    """
    _, of, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[of]
    centred: Floats = (ranks - ranks.mean()) / len(values)
    return centred


def _correlation(left: Floats, right: Floats) -> float | None:
    size = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / size if size > _SAME else None
