"""Scores are sorted and counted as numpy does it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.runs import caption_search

SCORES = st.lists(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 0.5, math.nan, math.inf]))


@given(SCORES, st.booleans())
def test_equal_scores_keep_their_order_and_missing_ones_come_last(scores, descending):
    found = caption_search.order_places(range(len(scores)), scores, descending=descending)
    told = np.array([score if math.isfinite(score) else np.nan for score in scores])
    assert found == np.argsort(-told if descending else told, kind="stable").tolist()


@given(st.lists(st.integers(-1000, 1000) | st.floats(-10, 10), min_size=1))
def test_the_distribution_is_a_histogram_of_30_bins(scores):
    found = caption_search.count_distribution(scores, 3)
    assert found.missing == 3
    assert found.edges == pytest.approx(np.histogram_bin_edges(scores, 30).tolist(), abs=1e-9)
    counts, _ = np.histogram(scores, np.array(found.edges))
    assert list(found.counts) == counts.tolist()
    assert sum(found.counts) == len(scores)


def test_a_score_on_an_edge_is_in_the_bin_that_begins_there():
    found = caption_search.count_distribution([0.0, 1.0, 2.0, 29.0, 30.0], 0)
    assert list(found.edges) == [float(at) for at in range(31)]
    assert list(found.counts) == [1, 1, 1, *[0] * 26, 2]


def test_of_no_scores_there_is_an_empty_distribution():
    found = caption_search.count_distribution([], 2)
    assert (found.edges[0], found.edges[-1], len(found.edges)) == (0.0, 1.0, 31)
    assert (found.counts, found.missing) == ((0,) * 30, 2)
