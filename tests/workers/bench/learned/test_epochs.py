import numpy as np
import pytest

from helpers import interruptions
from service.contract.errors import RunCanceled
from workers.bench.learned import nneval_fitting


class _CountingTraining:
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


def _trained(qualities, held_out=None, many=50, patience=30, **options):
    """By default the loss of every epoch is the same."""
    quality = lambda scores: qualities[int(scores[0])]  # noqa: E731
    loss = lambda scores: held_out[int(scores[0])] if held_out else 0.5  # noqa: E731
    return nneval_fitting.train_epochs(
        _CountingTraining(), quality, loss, many, patience, **options
    )


def test_the_best_epoch_is_kept_and_of_equals_the_first():
    """And so many epochs later (`patience`) it ends."""
    found = _trained([0.1, 0.5, 0.3, 0.7, 0.7, *[0.2] * 100], patience=4)
    assert (found.classifier, found.best_epoch) == (3, 3)
    assert found.qualities == [0.1, 0.5, 0.3, 0.7, 0.7, 0.2, 0.2, 0.2]
    assert np.isnan(found.losses[0])
    assert found.losses[1:] == [1 / epoch for epoch in range(1, 8)]


def test_an_epoch_that_tells_less_than_half_of_what_the_best_does_is_not_kept():
    """However high its quality is: ranks are the same for scores that hardly differ."""
    chance = np.log(2)
    losses = [chance, chance - 0.01, chance - 0.051, chance - 0.1, chance - 0.04]
    found = _trained([0.1, 0.9, 0.5, 0.3, 0.7], losses, many=4)
    assert (found.best_epoch, found.held_out) == (2, losses)
    nothing = _trained([0.1, 0.2, 0.3], [0.7, 0.8, 0.9], many=2)
    assert (nothing.classifier, nothing.best_epoch) == (0, 0)


def test_training_goes_on_while_either_becomes_better():
    falling = [1 / (1 + epoch) for epoch in range(8)] + [1.0] * 40
    found = _trained([0.5] * 50, falling, patience=4)
    assert len(found.qualities) - 1 == 7 + 4


def test_cross_entropy_is_that_of_who_wrote_each_and_finite():
    by_people = np.array([True, False, True])
    expected = -(np.log(0.9) + np.log(1 - 0.2) + np.log(0.5)) / 3
    assert nneval_fitting.compute_cross_entropy(
        np.array([0.9, 0.2, 0.5]), by_people
    ) == pytest.approx(expected)
    assert nneval_fitting.compute_cross_entropy(np.full(3, 0.5), by_people) == pytest.approx(
        nneval_fitting.CHANCE
    )
    assert np.isfinite(nneval_fitting.compute_cross_entropy(np.array([0.0, 1.0, 0.0]), by_people))


def test_progress_is_told_and_may_end_it():
    told = []
    found = _trained([0.0] * 4, many=3, progress=lambda *at: told.append(at))
    assert len(found.qualities) == 4
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    with pytest.raises(RunCanceled, match="2 of 3"):
        _trained([0.0] * 4, many=3, progress=interruptions.ends_when(lambda done: done == 2))
