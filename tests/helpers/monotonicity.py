"""What holds of every metric that squashes a sum of features with weights that are not negative."""

from collections.abc import Callable

import numpy as np


def check(scores: Callable[[np.ndarray], np.ndarray], features: int) -> None:
    """No score falls where a feature rises, on a grid beside random others; all are in [0, 1], 0
    without any feature and 1 with every one in full.
    """
    rng, grid = np.random.default_rng(0), np.linspace(0, 1, 21)
    for feature in range(features):
        for others in rng.random((20, features)):
            rising = np.tile(others, (len(grid), 1))
            rising[:, feature] = grid
            found = scores(rising)
            assert (np.diff(found) >= 0).all()
            assert (found >= 0).all()
            assert (found <= 1).all()
    assert scores(np.zeros(features)) == 0
    assert scores(np.ones(features)) == 1
