"""Oracles: images repeated as a resample says, and the closed forms of the bootstrap of a mean."""

import numpy as np
import pytest

from helpers.random_statistics import FAMILIES, scores, statistics
from workers.analysis import resamples
from workers.metrics import postgen
from workers.metrics.family import FamilyScores


@pytest.mark.parametrize("family", FAMILIES)
def test_a_resample_scores_as_its_images_repeated_would(family):
    kept = statistics(family, 50)
    (weights,) = resamples.draw_resamples(50, 20)
    found = resamples.sum_statistics(family, kept).drawn(weights)
    for draw, counts in enumerate(weights.astype(int)):
        repeated = {name: np.repeat(values, counts, axis=0) for name, values in kept.items()}
        expected = postgen.compute_corpus_scores(family, repeated)
        assert {name: values[draw] for name, values in found.items()} == pytest.approx(
            expected, rel=1e-12
        )


@pytest.mark.parametrize("family", ["bleu", "meteor"])
def test_scores_of_counts_are_the_same_in_every_digit(family):
    kept = statistics(family, 50)
    found = resamples.sum_statistics(family, kept).drawn(np.ones((1, 50)))
    whole = postgen.compute_corpus_scores(family, kept)
    assert {name: values.tolist() for name, values in found.items()} == {
        name: [value] for name, value in whole.items()
    }


def test_every_image_is_drawn_as_often_as_another_and_as_many_as_there_are():
    """Multinomial: mean 1, variance 1 - 1/n, covariance -1/n."""
    (found,) = resamples.draw_resamples(40, 20_000)
    assert found.shape == (20_000, 40)
    assert set(found.sum(axis=1)) == {40.0}
    assert found.mean(axis=0) == pytest.approx(np.ones(40), abs=5 * np.sqrt(0.975 / 20_000))
    covariance = np.cov(found.T)
    assert np.diag(covariance) == pytest.approx(np.full(40, 0.975), abs=0.07)
    others = covariance[~np.eye(40, dtype=bool)]
    assert others.mean() == pytest.approx(-1 / 40, abs=1e-3)


def test_draws_are_the_same_every_time_and_in_blocks_of_any_size(monkeypatch):
    (whole,), (coins,) = resamples.draw_resamples(30, 50), resamples.draw_swaps(30, 50)
    monkeypatch.setattr(resamples, "_CELLS", 100)
    assert len([*resamples.draw_resamples(30, 50)]) == 17
    np.testing.assert_array_equal(np.concatenate([*resamples.draw_resamples(30, 50)]), whole)
    np.testing.assert_array_equal(np.concatenate([*resamples.draw_swaps(30, 50)]), coins)
    assert (np.concatenate([*resamples.draw_resamples(30, 50, seed=1)]) != whole).any()


def test_sides_change_places_by_a_fair_coin():
    coins = np.concatenate([*resamples.draw_swaps(30, 20_000)])
    assert set(np.unique(coins)) == {0.0, 1.0}
    assert coins.mean(axis=0) == pytest.approx(np.full(30, 0.5), abs=5 * 0.5 / np.sqrt(20_000))
    correlation = np.corrcoef(coins.T)[~np.eye(30, dtype=bool)]
    assert np.abs(correlation).max() < 5 / np.sqrt(20_000)


def test_the_bootstrap_of_a_mean_is_known():
    """Mean: the mean; standard deviation: the population's by the root of n; interval: normal."""
    values = np.random.default_rng(3).gamma(2.0, size=2000)
    kept = {"rouge_l": values}
    found = resamples.resample_sums(resamples.sum_statistics("rouge_l", kept))["rouge_l"]
    error = np.std(values) / np.sqrt(2000)
    assert len(found) == resamples.RESAMPLES == 1000
    assert found.mean() == pytest.approx(values.mean(), abs=4 * error / np.sqrt(1000))
    assert np.std(found) == pytest.approx(error, rel=4 / np.sqrt(2000))
    low, high = resamples.compute_intervals(scores("rouge_l", kept))["rouge_l"]
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_constant_metric_is_known_for_sure(family):
    kept = {
        name: np.repeat(values, 70, axis=0) for name, values in statistics(family, 1, 5).items()
    }
    given = scores(family, kept)
    found = resamples.compute_intervals(given)
    for name, value in given.corpus.items():
        low, high = found[name]
        assert low == high == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_known_of_one_image(family):
    assert resamples.compute_intervals(scores(family, statistics(family, 1))) == {}


def test_where_a_resample_is_infinite_there_is_no_interval():
    """One image of four has a distance: a third of the resamples have none."""
    kept = statistics("wmd", 4) | {"measured": np.array([0.0, 1.0, 0.0, 0.0])}
    assert list(resamples.compute_intervals(scores("wmd", kept))) == ["wmd"]


def test_what_captions_are_like_has_intervals_where_it_is_a_mean():
    captions = {"caption_length": np.arange(30.0), "from_training": np.arange(30) % 3 == 0.0}
    corpus = {"caption_length": 14.5, "from_training": 1 / 3, "words_used": 70.0}
    given = FamilyScores("variety", corpus, captions, {}, {})
    found = resamples.compute_intervals(given)
    assert list(found) == ["caption_length", "from_training"]
    assert all(low < corpus[name] < high for name, (low, high) in found.items())
