import pytest

from workers.bench.judging.verdict import list_observations

RATINGS = [(3.0, 4.0, 4.0), (1.0,), (1.0, 2.0, 4.0), (1.0, 1.0, 4.0, 4.0)]


@pytest.mark.parametrize(
    ("raters", "values", "lines"),
    [
        ("flat", [3, 4, 4, 1, 1, 2, 4, 1, 1, 4, 4], [0, 0, 0, 1, 2, 2, 2, 3, 3, 3, 3]),
        ("mean", [11 / 3, 1, 7 / 3, 2.5], [0, 1, 2, 3]),
        ("mode", [4, 1, 1, 1], [0, 1, 2, 3]),  # the lowest of several
    ],
)
def test_several_ratings_stand_each_for_itself_or_as_one(raters, values, lines):
    found, places = list_observations(RATINGS, raters)
    assert found.tolist() == pytest.approx(values)
    assert places.tolist() == lines
