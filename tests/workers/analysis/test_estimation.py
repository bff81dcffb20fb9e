"""Estimates of a whole from some of its images, against closed forms."""

import numpy as np
import pytest

from helpers.random_statistics import statistics
from workers.analysis import estimation, past_systems
from workers.analysis.estimation import DrawnImages
from workers.metrics import postgen


def _mean(values, sample, known=None):
    known = np.zeros((len(values), 0)) if known is None else known
    seen, beside = values[sample], known[sample]
    return estimation.fit_estimate(float(seen.mean()), seen - seen.mean(), beside, len(values))


def test_without_anything_known_it_is_the_mean_with_its_finite_population_error():
    values = np.random.default_rng(0).exponential(size=200)
    found = _mean(values, np.arange(50))
    assert found.value == pytest.approx(values[:50].mean())
    usual = values[:50].std(ddof=1) / np.sqrt(50) * np.sqrt(1 - 50 / 200)
    assert found.error == pytest.approx(usual * np.sqrt(50 / 49))  # an image's own pull is left out


def test_what_is_known_of_all_images_corrects_the_sample():
    """The textbook's regression estimator, for one variable."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    x -= x.mean()
    y = 2 * x + rng.normal(size=300)
    sample = np.argsort(-x)[:100]  # far from the whole
    slope = np.polyfit(x[sample], y[sample], 1)[0]
    found = _mean(y, sample, x[:, None])
    assert found.value == pytest.approx(y[sample].mean() - slope * x[sample].mean())


def test_all_images_are_their_own_score_without_error():
    values = np.random.default_rng(3).normal(size=80)
    found = _mean(values, np.random.default_rng(4).permutation(80))
    assert found.value == pytest.approx(values.mean(), rel=1e-12)
    assert found.error == 0
    assert found.interval(2.5) == (found.value, found.value)


def test_columns_that_say_the_same_twice_do_no_harm():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 1))
    x -= x.mean()
    y = x[:, 0] + rng.normal(size=300)
    once, twice = (_mean(y, np.arange(99), np.repeat(x, times, axis=1)) for times in (1, 2))
    assert twice.value == pytest.approx(once.value)
    assert twice.error == pytest.approx(once.error)


def test_the_interval_leans_to_where_the_long_tail_is():
    """Johnson 1978, for a sample that is small beside its population: by a sixth of the skewness
    over the root of n, times 1 + 2 t^2.
    """
    values = np.random.default_rng(6).exponential(size=10_000_000)
    found = _mean(values, np.arange(400))
    low, high = found.interval(1.96)
    width = (high - low) / 2 / found.error
    lean = (high + low) / 2 - found.value
    expected = found.error * found.skewness / np.sqrt(400) * (1 + 2 * width**2) / 6
    assert lean == pytest.approx(expected, rel=0.01)
    assert width == pytest.approx(1.966, abs=0.001)  # of 399 degrees of freedom


def test_what_an_image_adds_to_bleu_is_the_derivative_of_the_formula():
    found = statistics("bleu", 60)
    found["reference_length"] = found["length"] + 1  # captions that are too short
    score = postgen.compute_corpus_scores("bleu", found)["bleu_4"]
    share = {name: values / values.sum(axis=0) for name, values in found.items()}
    brevity = found["reference_length"].sum() / found["length"].sum()
    expected = (share["matches"] - share["ngrams"]).mean(axis=1)
    expected += brevity * (share["length"] - share["reference_length"])
    images = len(expected)
    assert estimation.compute_influences("bleu", found)["bleu_4"] == pytest.approx(
        score * expected * images, abs=1e-6
    )


def test_what_an_image_adds_to_a_mean_is_its_own_score():
    values = np.random.default_rng(9).uniform(size=30)
    found = estimation.compute_influences("cider_d", {"cider_d": values})["cider_d"]
    assert found == pytest.approx(values - values.mean(), abs=1e-9)


def test_the_bound_of_the_final_error_is_seldom_too_low_and_the_error_itself_at_the_end():
    rng = np.random.default_rng(0)
    too_low, ratios = 0, []
    for _ in range(400):
        differences = rng.exponential(1.0, 500)
        truth = differences.std(ddof=1) / np.sqrt(500)
        found = estimation.bound_final_error(differences[:128], 500)
        too_low += found < truth
        ratios.append(found / truth)
        assert estimation.bound_final_error(differences, 500) == pytest.approx(truth, rel=1e-12)
    assert too_low / 400 < 0.16  # 12 %, of a long tail; without the bound more than half
    assert np.mean(ratios) < 1.3
    assert estimation.bound_final_error(np.zeros(128), 500) == 0.0


def test_the_bound_of_the_final_error_is_that_of_the_images_that_each_one_stands_for():
    rng = np.random.default_rng(1)
    differences, chances = rng.normal(size=60), np.where(np.arange(60) < 20, 1.0, 0.5)
    weights = 1 / chances / (1 / chances).mean()
    mean = (weights * differences).mean()
    variance = (weights * (differences - mean) ** 2).mean() * 60 / 59
    found = estimation.bound_final_error(differences, 60, chances)
    assert found == pytest.approx(np.sqrt(variance / 60))
    assert estimation.bound_final_error(differences, 100, chances) > np.sqrt(variance / 100)
    even = estimation.bound_final_error(differences, 100, np.full(60, 0.6))
    assert even == pytest.approx(estimation.bound_final_error(differences, 100))


def _drawn(values, sample, odds):
    chances = past_systems.compute_chances(odds, len(sample))[sample]
    weights = 1 / chances
    mean = float(values[sample] @ weights / weights.sum())
    none = np.zeros((len(sample), 0))
    moved = values[sample] - mean
    return estimation.fit_estimate(mean, moved, none, len(values), chances), chances


def test_images_drawn_with_unequal_chances_count_by_their_inverse():
    """Hájek's mean, and its variance of independent draws; an image's own pull is left out."""
    rng = np.random.default_rng(7)
    values, odds = rng.exponential(size=200), rng.uniform(0.5, 3, size=200)
    sample = np.arange(50)
    found, chances = _drawn(values, sample, odds)
    shares = 1 / chances / (1 / chances).sum()
    assert found.value == pytest.approx(values[sample] @ shares)
    left = (values[sample] - found.value) / (1 - shares)
    assert found.error == pytest.approx(np.sqrt(((1 - chances) * (shares * left) ** 2).sum()))


def test_images_that_are_certain_leave_no_error():
    values = np.random.default_rng(8).exponential(size=100)
    odds = np.where(np.arange(100) < 60, 1e6, 1.0)
    values[60:] = 1.0
    found, chances = _drawn(values, np.arange(80), odds)
    assert (chances[:60] == 1).all()
    assert found.value == pytest.approx((values[:60].sum() + 40) / 100)


def test_equal_chances_are_a_simple_draw():
    values = np.random.default_rng(0).exponential(size=200)
    found, _ = _drawn(values, np.arange(50), np.ones(200))
    simple = _mean(values, np.arange(50))
    assert found.value == pytest.approx(simple.value)
    assert found.error == pytest.approx(simple.error)
    assert found.interval(2.5) == pytest.approx(simple.interval(2.5))


@pytest.mark.parametrize("family", ["bleu", "meteor", "cider_d"])
def test_an_image_that_stands_for_two_counts_as_two(family):
    """Sums are weighted, so BLEU is that of the images written down as often as they count."""
    found = statistics(family, 40)
    chances = np.where(np.arange(60) < 20, 1.0, 0.5)
    images = np.arange(40)
    twice = np.repeat(images, np.where(images < 20, 1, 2))
    expected = postgen.compute_corpus_scores(family, {n: v[twice] for n, v in found.items()})
    drawn = DrawnImages(chances, {})
    known = np.zeros((60, 1))
    said = estimation.estimate_scores(family, found, images, known, drawn=drawn)
    assert {name: each.value for name, each in said.items()} == pytest.approx(expected)


@pytest.mark.parametrize("family", ["bleu", "cider_d"])
def test_a_baseline_with_the_same_captions_leaves_nothing_open(family):
    whole = statistics(family, 300)
    truth = postgen.compute_corpus_scores(family, whole)
    odds = np.random.default_rng(2).uniform(0.5, 3, 300)
    images = np.argsort(-odds)[:120]  # far from the whole
    seen = {name: values[images] for name, values in whole.items()}
    drawn = DrawnImages(past_systems.compute_chances(odds, 120), {})
    said = estimation.estimate_scores(family, seen, images, np.zeros((300, 1)), whole, drawn)
    for name, each in said.items():
        assert each.value == pytest.approx(truth[name], abs=1e-9)


def test_what_past_systems_tell_corrects_the_sample():
    rng = np.random.default_rng(1)
    hard = rng.normal(size=300)
    hard -= hard.mean()
    values = {"cider_d": 1 + 0.3 * hard}
    images = np.argsort(-hard)[:100]
    drawn = DrawnImages(np.full(300, 1 / 3), {"cider_d": hard})
    seen = {"cider_d": values["cider_d"][images]}
    said = estimation.estimate_scores("cider_d", seen, images, np.zeros((300, 1)), drawn=drawn)
    assert said["cider_d"].value == pytest.approx(1.0)
    assert said["cider_d"].error == pytest.approx(0, abs=1e-9)
