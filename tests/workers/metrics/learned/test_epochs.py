import numpy as np
import pytest

import ending
from service.contract.errors import Canceled
from workers.metrics.learned import epochs


class _Counting:
    """Learns to count."""

    def __init__(self):
        self.count = 0

    def epoch(self):
        self.count += 1
        return 1 / self.count

    def watched(self):
        return np.array([float(self.count)])

    def learnt(self):
        return self.count


def _trained(qualities, many=50, patience=30, **options):
    told = lambda scores: qualities[int(scores[0])]  # noqa: E731
    return epochs.train(_Counting(), told, many, patience, **options)


def test_the_best_epoch_is_kept_and_of_equals_the_first():
    """And so many epochs later (`patience`) it ends."""
    found = _trained([0.1, 0.5, 0.3, 0.7, 0.7, *[0.2] * 100], patience=4)
    assert (found.classifier, found.best_epoch) == (3, 3)
    assert found.qualities == [0.1, 0.5, 0.3, 0.7, 0.7, 0.2, 0.2, 0.2]
    assert np.isnan(found.losses[0])
    assert found.losses[1:] == [1 / epoch for epoch in range(1, 8)]


def test_what_is_best_untrained_is_kept_untrained():
    found = _trained([0.5] * 10, many=3)
    assert (found.classifier, found.best_epoch, len(found.qualities)) == (0, 0, 4)


def test_progress_is_told_and_may_end_it():
    told = []
    _trained([0.0] * 4, many=3, progress=lambda *at: told.append(at))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    with pytest.raises(Canceled, match="2 of 3"):
        _trained([0.0] * 4, many=3, progress=ending.ends_when(lambda done: done == 2))
