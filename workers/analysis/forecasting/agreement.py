"""Whether a predictor ranks evaluations as a metric does: Spearman's rho, over all and within sets.

Over all evaluations, good pictures of early and late checkpoints are enough for a high rho, and so
are architectures that happen to lie in order. Within a set (a training run; or one architecture,
where runs have one evaluation each) the predictor has to rank what differs in nothing else.
"""

import numpy as np

from workers.analysis.forecasting.history import Floats, History, Ints

_SAME = 1e-12


def spearman(left: Floats, right: Floats) -> float | None:
    """None where one side is constant."""
    return _correlation(_centred_ranks(left), _centred_ranks(right))


def within_sets(left: Floats, right: Floats, sets: Ints) -> float | None:
    """Ranks are taken within each set; a set of one says nothing."""
    ranks = [
        (_centred_ranks(left[sets == at]), _centred_ranks(right[sets == at])) for at in set(sets)
    ]
    sides = (np.concatenate([pair[side] for pair in ranks]) for side in (0, 1))
    return _correlation(*sides)


def comparable_sets(history: History) -> Ints:
    """Runs; architectures where most evaluations are the only one of their run."""
    sizes = np.bincount(history.runs)[history.runs]
    return history.architectures if (sizes == 1).mean() > 0.5 else history.runs


def _centred_ranks(values: Floats) -> Floats:
    """As shares of their set, ties in the middle: large sets do not weigh more by evaluation."""
    _, of, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[of]
    centred: Floats = (ranks - ranks.mean()) / len(values)
    return centred


def _correlation(left: Floats, right: Floats) -> float | None:
    size = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / size if size > _SAME else None
