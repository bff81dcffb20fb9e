"""Definitions worked out by hand: the oracles, and pre-gen metrics as they are computed."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from oracles import captioner
from oracles import pregen as definitions
from workers.metrics import pregen

INF = math.inf
BOTH = pytest.mark.parametrize("scores", [definitions.scores, pregen.scores])

# Three captions: A and B of the first image, C of the second.
P = [1 / 2, 1 / 4, 1 / 8, 1 / 4, 1 / 4, 1 / 16]
RANK = [0, 1, 0, 0, 0, 3]
BY_HAND = {  # score_filter: A, B, C
    "prob_none": (1 / 64, 1 / 16, 1 / 16),
    "pplx_none": (4, 4, 16),
    "count_none": (3, 2, 1),
    "normcount_none": (1, 1, 1),
    "prob_filter0": (1 / 16, 1 / 16, 0),
    "pplx_filter0": (4, 4, INF),
    "count_filter0": (2, 2, 0),
    "normcount_filter0": (2 / 3, 1, 0),
    "prob_prefix0": (1 / 2, 1 / 16, 0),
    "pplx_prefix0": (2, 4, INF),
    "count_prefix0": (1, 2, 0),
    "normcount_prefix0": (1 / 3, 1, 0),
    "prob_miss0": (1 / 4, 0, 1 / 16),
    "pplx_miss0": (4, INF, 16),
    "count_miss0": (1, 0, 1),
    "normcount_miss0": (1 / 3, 0, 1),
}


@BOTH
@pytest.mark.parametrize("name", BY_HAND)
def test_captions_by_hand(scores, name):
    a, b, c = BY_HAND[name]
    found = scores(np.log(P), np.array(RANK), np.array([0, 3, 5, 6]), np.array([0, 2, 3]))
    expected = {
        "sum_join": a + b + c,
        "mean_join": (a + b + c) / 3,
        "median_join": sorted([a, b, c])[1],
        "max_join": max(a, b, c),
        "min_join": min(a, b, c),
        "sum_sum": a + b + c,
        "mean_mean": ((a + b) / 2 + c) / 2,
        "median_median": ((a + b) / 2 + c) / 2,
        "max_min": max(min(a, b), c),
        "min_max": min(max(a, b), c),
        "geomean_geomean": 0.0 if 0 in (a, b, c) else math.sqrt(math.sqrt(a * b) * c),
    }
    got = {pools: found[f"{pools}_{name}"] for pools in expected}
    assert got == pytest.approx(expected, rel=1e-12)


def _of_captions(scores, *logp):
    """Of one image whose captions have these tokens."""
    offsets = np.cumsum([0, *map(len, logp)])
    tokens = np.concatenate(logp)
    return scores(tokens, np.zeros(len(tokens), int), offsets, np.array([0, len(logp)]))


@BOTH
def test_infinite_captions_in_every_pool(scores):
    found = _of_captions(scores, [-INF], [math.log(1 / 2)], [-INF], [math.log(1 / 8)])
    got = {pool: found[f"mean_{pool}_pplx_none"] for pool in definitions.POOLS}
    finite = {"min": 2.0}
    assert got == pytest.approx({pool: finite.get(pool, INF) for pool in definitions.POOLS})
    assert _of_captions(scores, [-INF], [-INF])["median_median_pplx_none"] == INF  # not nan


@pytest.mark.filterwarnings("ignore:overflow encountered")
@BOTH
def test_underflow_and_overflow(scores):
    """E ** 700 is still a float64, e ** 800 and 2 * e ** 709.5 are not."""
    one = _of_captions(scores, [-800.0, -600.0])
    assert one["mean_mean_prob_none"] == 0.0
    assert one["mean_mean_pplx_none"] == pytest.approx(math.exp(700.0), rel=1e-12)
    assert _of_captions(scores, [-800.0])["mean_mean_pplx_none"] == INF
    two = _of_captions(scores, [-709.5], [-709.5])
    assert two["max_max_pplx_none"] < INF
    assert two["mean_mean_pplx_none"] == two["sum_sum_pplx_none"] == INF


P4 = [0.4, 0.3, 0.2, 0.1]  # END, UNK, two words
P3 = [0.25, 0.1, 0.65]
SEARCHES: list[tuple[Sequence[float], tuple[int, int, int, bool], list[int], float]] = [
    (P4, (3, 0, 50, False), [], 0.4),
    (P4, (3, 0, 50, True), [], 0.4),
    (P4, (3, 2, 50, False), [2, 2], 0.2 * 0.2 * 0.4),  # nothing is renormalised
    (P4, (3, 2, 50, True), [1, 1], 0.3 * 0.3 * 0.4),
    (P4, (3, 4, 50, False), [2] * 4, 0.2**4 * 0.4),
    (P4, (3, 4, 1, False), [2], 0.2),  # cut: without END
    (P4, (3, 0, 0, False), [], 1.0),
    # The complete [] waits in the beam until .65 ** n has fallen below .25.
    (P3, (3, 0, 50, False), [], 0.25),
    (P3, (3, 0, 3, False), [2] * 3, 0.65**3),
    # With one place, [] is pushed out at once.
    (P3, (1, 0, 6, False), [2] * 6, 0.65**6),
    ([0.3, 0.3, 0.2, 0.2], (1, 0, 50, True), [], 0.3),  # END is the lowest of equals
    ([0.3, 0.3, 0.2, 0.2], (1, 2, 50, False), [2, 2], 0.2 * 0.2 * 0.3),
]


@pytest.mark.parametrize(("p", "how", "words", "probability"), SEARCHES)
def test_searches_by_hand(p, how, words, probability):
    """Of a model that gives each id its probability, whatever came before."""
    found, logp = captioner.search(lambda _: np.log(p), *how)
    assert found == words
    assert math.exp(logp) == pytest.approx(probability, rel=1e-13)
