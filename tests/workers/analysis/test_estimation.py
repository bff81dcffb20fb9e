"""Estimates of a whole from some of its images, against closed forms."""

import numpy as np
import pytest

from helpers.random_statistics import statistics
from workers.analysis import estimation
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
