import numpy as np
import pytest

from workers.analysis.judging import preferences
from workers.files.judgements import Pair


def _pairs(*judged):
    return [Pair(("x",), "a", "b", preferred, category) for preferred, category in judged]


def test_right_is_strictly_higher_and_a_tie_is_wrong():
    pairs = _pairs(("a", "HM"), ("a", "HM"), ("b", "HM"), ("b", "HM"), ("b", "MM"))
    scores = np.array([[2, 1], [1, 2], [1, 2], [1, 1], [0, 0.5]])
    found = preferences.accuracies(pairs, scores)
    assert found == {
        "HM": {"n": 4, "accuracy": 0.5, "ties": 0.25},
        "MM": {"n": 1, "accuracy": 1.0, "ties": 0.0},
        "all": {"n": 5, "accuracy": 0.6, "ties": 0.2},
        "average": {"n": 5, "accuracy": 0.75, "ties": 0.125},
        "worst": {"n": 4, "accuracy": 0.5, "ties": 0.25, "category": "HM"},
    }


@pytest.mark.parametrize("preferred", ["a", "b"])
def test_a_metric_that_says_the_same_of_all_is_never_right(preferred):
    found = preferences.accuracies(_pairs(*[(preferred, "HC")] * 3), np.zeros((3, 2)))
    assert found["all"] == {"n": 3, "accuracy": 0.0, "ties": 1.0}


def test_pairs_without_a_category_count_in_all_alone():
    found = preferences.accuracies(_pairs(("a", "HM"), ("a", None)), np.array([[1, 0], [0, 1]]))
    assert found["all"]["accuracy"] == 0.5
    assert found["average"]["accuracy"] == found["HM"]["accuracy"] == 1
    alone = preferences.accuracies(_pairs(("a", None)), np.array([[1, 0]]))
    assert alone == {
        "all": {"n": 1, "accuracy": 1.0, "ties": 0.0},
        "average": {"n": 0, "accuracy": None, "ties": None},
        "worst": {"n": 0, "accuracy": None, "ties": None, "category": None},
    }
