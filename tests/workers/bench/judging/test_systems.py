"""Agreement over systems, by scipy on a table of means."""

import numpy as np
import pytest
from scipy import stats

from workers.bench.judging import systems

QUALITY = np.array([0.0, 0.3, 0.5, 1.2, 2.0])


def _lines(images=40, seed=0):
    """Each of five systems has a line for each image."""
    rng = np.random.default_rng(seed)
    who = np.tile(np.arange(5), images)
    groups = np.repeat(np.arange(images), 5)
    easy = rng.normal(size=images)[groups]
    ratings = QUALITY[who] + easy + rng.normal(size=5 * images)
    scores = QUALITY[who] + easy + 2 * rng.normal(size=5 * images)
    return [f"s{each}" for each in who], {"m": scores}, ratings, groups


def test_means_of_systems_are_correlated():
    names, scores, ratings, groups = _lines()
    found = systems.correlate_systems(names, scores, ratings, groups)
    assert (found["n"], found["lines"], found["clusters"]) == (5, 200, 40)
    means = [each.reshape(40, 5).mean(axis=0) for each in (scores["m"], ratings)]
    row = found["metrics"]["m"]
    assert list(row["scores"].values()) == pytest.approx(means[0])
    assert list(found["ratings"].items()) == [
        (f"s{at}", pytest.approx(mean)) for at, mean in enumerate(means[1])
    ]
    rules = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall_b": stats.kendalltau}
    for name, rule in rules.items():
        assert row[name] == pytest.approx(rule(*means).statistic), name


def test_intervals_are_those_of_resampled_images():
    names, scores, ratings, groups = _lines(30)
    row = systems.correlate_systems(names, scores, ratings, groups)["metrics"]["m"]
    tables = [each.reshape(30, 5) for each in (scores["m"], ratings)]
    rng = np.random.default_rng(9)
    drawn = []
    for _ in range(4000):
        at = rng.integers(0, 30, 30)
        drawn.append(np.corrcoef(*(table[at].mean(axis=0) for table in tables))[0, 1])
    assert row["intervals"]["pearson"] == pytest.approx(
        np.quantile(drawn, (0.025, 0.975)), abs=0.02
    )
    low, high = row["intervals"]["kendall_b"]
    assert -1 <= low <= row["kendall_b"] <= high <= 1


def test_lines_without_a_system_do_not_count():
    names, scores, ratings, groups = _lines()
    more = systems.correlate_systems(
        [*names, None],
        {"m": np.append(scores["m"], 100)},
        np.append(ratings, -100),
        np.append(groups, 0),
    )
    assert more == systems.correlate_systems(names, scores, ratings, groups)
    nobody = [None] * len(names)
    assert systems.correlate_systems(nobody, scores, ratings, groups) == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda names, *rest: (
                [{"s4": "s0", "s3": "s0", "s2": "s0"}.get(each, each) for each in names],
                *rest,
            ),
            "expected at least 3 systems, found 2",
        ),
        (
            lambda names, scores, *rest: (names, {"m": scores["m"] * 0 + 0.1}, *rest),
            "every system has the same mean score",
        ),
        (
            lambda names, scores, *rest: (names, {"m": scores["m"] + np.inf}, *rest),
            "expected finite numbers, some mean score is not",
        ),
    ],
)
def test_where_there_is_no_agreement_a_word_says_why(change, said):
    row = systems.correlate_systems(*change(*_lines()))["metrics"]["m"]
    assert row["reason"] == said
    assert row["pearson"] is None
    assert set(row["intervals"].values()) == {None}


def test_few_images_give_no_interval():
    row = systems.correlate_systems(*_lines(9))["metrics"]["m"]
    assert set(row["intervals"].values()) == {None}
    assert row["reason"].startswith("no intervals")
    assert row["pearson"] is not None


def test_means_that_differ_by_rounding_tie():
    """Two systems have the same scores, added up in another order."""
    names, scores, ratings, groups = _lines()
    values = scores["m"].reshape(40, 5)
    values[:, 1] = values[::-1, 0]
    means = values.mean(axis=0)
    means[1] = means[0]
    found = systems.correlate_systems(names, {"m": values.ravel()}, ratings, groups)
    expected = stats.kendalltau(means, ratings.reshape(40, 5).mean(axis=0)).statistic
    assert found["metrics"]["m"]["kendall_b"] == pytest.approx(expected)
