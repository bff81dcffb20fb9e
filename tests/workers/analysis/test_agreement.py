"""A comparison's interval and its p say the same. Oracle: the test itself of systems that were
shifted.
"""

import numpy as np
import pytest

from helpers.random_statistics import scores, statistics
from workers.analysis import comparison
from workers.analysis.comparison import compare_scores


def _means(gaps, seed=0):
    """Two systems whose scores of images differ by these gaps."""
    of_image = np.random.default_rng(seed).random(len(gaps))
    return tuple(scores("rouge_l", {"rouge_l": each}) for each in (of_image + gaps, of_image))


def _near_the_border(images, seed):
    """One is better by about as much as a test at 5 % can tell; gaps are skewed."""
    rng = np.random.default_rng([seed, images])
    gaps = rng.gamma(0.7, 0.2, images)
    gaps += rng.uniform(1.5, 2.5) * np.std(gaps) / np.sqrt(images) - gaps.mean()
    return _means(rng.choice([-1, 1]) * gaps, seed)


def _counts(images, seed):
    """Two systems of counts, one of which has the other's captions of many images."""
    a, b = (statistics("bleu", images, 2 * seed + at) for at in (0, 1))
    same = np.random.default_rng(seed).random(images) < 0.6
    for name, values in a.items():
        b[name] = np.where(same.reshape(-1, *[1] * (values.ndim - 1)), values, b[name])
    return scores("bleu", a), scores("bleu", b)


def _disagree(found):
    low, high = found.interval
    return (low <= 0 <= high) == (found.p < 0.05)


@pytest.mark.parametrize("images", [8, 60])
def test_the_interval_has_no_0_exactly_where_p_is_below_5_percent(images):
    found = [compare_scores(*_near_the_border(images, seed), trials=400) for seed in range(30)]
    found = [each["rouge_l"] for each in found]
    assert 7 < sum(each.p < 0.05 for each in found) < 23
    assert sum(map(_disagree, found)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("images", [12, 200, 1000])
def test_of_many_pairs_near_the_border_none_is_told_two_things(images):
    found = [compare_scores(*_near_the_border(images, seed))["rouge_l"] for seed in range(200)]
    found += [each for seed in range(8) for each in compare_scores(*_counts(images, seed)).values()]
    assert sum(0.02 < each.p < 0.1 for each in found) > 60
    assert sum(map(_disagree, found)) == 0


def test_it_is_so_of_metrics_that_are_no_means():
    found = [
        each
        for seed in range(8)
        for each in compare_scores(*_counts(40, seed), trials=400).values()
    ]
    assert sum(map(_disagree, found)) == 0


@pytest.mark.parametrize("bound", [0, 1])
def test_a_bound_is_where_the_test_of_a_shifted_system_turns(bound):
    a, b = _near_the_border(50, 3)
    turns = compare_scores(a, b, trials=999)["rouge_l"].interval[bound]
    for inside, shift in ((True, turns * (1 + 1e-6)), (False, turns * (1 - 1e-6))):
        moved = scores("rouge_l", {"rouge_l": a.statistics["rouge_l"] - shift})
        p = compare_scores(moved, b, trials=999)["rouge_l"].p
        assert (p >= 0.05) == (inside == ((bound == 0) == (turns > 0))), (p, shift)


@pytest.mark.parametrize(("images", "known"), [(2, False), (5, False), (6, True)])
def test_five_images_are_too_few_for_a_bound(images, known):
    """All on one side is chance once in 16 of five images, and once in 32 of six."""
    found = compare_scores(*_means(np.linspace(0.1, 0.2, images)), trials=2000)["rouge_l"]
    assert (found.interval is not None) == (found.p < 0.05) == known
    assert found.minimum_detectable is not None


def test_trials_that_can_give_no_small_p_give_no_bound():
    found = comparison.TrialDifferences(np.zeros(18), np.zeros(18))
    assert comparison.invert_test(1.0, found) is None
    found = comparison.TrialDifferences(np.zeros(39), np.zeros(39))
    assert comparison.invert_test(1.0, found) == (1.0, 1.0)


def test_a_difference_that_a_trial_meets_to_a_rounding_is_met():
    """Gaps of which many parts have the same sums, in another order of adding up."""
    for seed in range(20):
        gaps = np.random.default_rng(seed).choice([-0.1, 0.3], 12)
        found = compare_scores(*_means(gaps, seed), trials=400)["rouge_l"]
        assert not _disagree(found), seed
