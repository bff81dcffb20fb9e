"""p values and intervals in a world where lines of one image depend on each other."""

import math

import numpy as np
import pytest
from scipy import stats

from workers.bench.judgements import JudgedPair, Judgements, RatedCaption
from workers.bench.judging import correlations, scoring
from workers.bench.judging.scoring import cluster_lines

SIZES = [(100, 3), (100, 10), (100, 30), (40, 8)]
WITHIN = 0.5  # the correlation of two lines of one image, in scores and in quality


def _draw(rng, many, lines, link):
    """Scores that follow quality by `link`; ratings from 0 to 4. Images have as many lines as
    `lines` says, or half of it more or fewer.
    """
    sizes = rng.integers(math.ceil(lines / 2), 3 * lines // 2 + 1, many)
    groups = np.repeat(np.arange(many), sizes)

    def correlated():
        shared, own = rng.normal(size=many)[groups], rng.normal(size=len(groups))
        return math.sqrt(WITHIN) * shared + math.sqrt(1 - WITHIN) * own

    quality = correlated()
    scores = np.maximum(correlated() + link * quality, -0.5)
    return scores, np.round(quality + 2).clip(0, 4), groups


def _agree(found):
    for name, field in correlations.P_VALUES.items():
        low, high = found["intervals"][name]
        assert (found[field] < 0.05) == (low > 0 or high < 0), name


def _rates(many, lines, link, files, truth):
    """By correlation: how often p < .05, how often the interval holds the truth."""
    small, held = (dict.fromkeys(correlations.NAMES, 0) for _ in range(2))
    for seed in range(files):
        found = correlations.correlate_ratings(
            *_draw(np.random.default_rng(seed), many, lines, link)
        )
        _agree(found)
        for name, field in correlations.P_VALUES.items():
            low, high = found["intervals"][name]
            small[name] += found[field] < 0.05
            held[name] += low <= truth[name] <= high
    return [{name: times / files for name, times in counts.items()} for counts in (small, held)]


NONE = dict.fromkeys(correlations.NAMES, 0.0)


def test_p_and_interval_agree_and_lines_of_one_image_are_no_independent_evidence():
    """By p values for independent lines, a third of such files would seem to agree with people."""
    small, _ = _rates(100, 10, 0, 60, NONE)
    assert all(share <= 0.15 for share in small.values()), small
    independent = 0
    for seed in range(60):
        scores, ratings, _ = _draw(np.random.default_rng(seed), 100, 10, 0)
        independent += stats.pearsonr(scores, ratings).pvalue < 0.05
    assert independent / 60 > 0.25


@pytest.mark.slow
@pytest.mark.parametrize(("many", "lines"), SIZES)
def test_five_of_a_hundred_files_without_agreement_seem_to_have_some(many, lines):
    """4,000 files: the share itself is known to .0034 (a standard error)."""
    small, held = _rates(many, lines, 0, 4000, NONE)
    for name, share in small.items():
        assert 0.04 <= share <= 0.06, (name, share)
        assert 0.93 <= held[name] <= 0.97, (name, held[name])


def test_pearsons_standard_error_is_that_of_leaving_each_image_out():
    scores, ratings, groups = _draw(np.random.default_rng(1), 60, 6, 0.5)
    found = correlations.correlate_ratings(scores, ratings, groups)
    without = [
        np.corrcoef(scores[groups != each], ratings[groups != each])[0, 1] for each in range(60)
    ]
    r = np.corrcoef(scores, ratings)[0, 1]
    error = math.sqrt(np.var(without) * 59) / (1 - r**2)
    expected = 2 * stats.t.sf(math.atanh(r) / error, 59)
    assert found["pearson_p"] == pytest.approx(expected, rel=1e-9)
    low, high = found["intervals"]["pearson"]
    half = (math.atanh(high) - math.atanh(low)) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, 59) * error, rel=1e-9)


def test_kendalls_standard_error_is_the_clustered_sandwichs():
    """By its definition: a line's share of the net agreements, summed by image."""
    scores, ratings, groups = _draw(np.random.default_rng(2), 50, 4, 0.5)
    found = correlations.correlate_ratings(scores, ratings, groups)
    signs = np.sign(scores[:, None] - scores) * np.sign(ratings[:, None] - ratings)
    levels = min(len(np.unique(scores)), len(np.unique(ratings)))
    moved = 2 * (signs.mean(axis=1) - signs.mean()) * levels / (levels - 1)
    meat = sum(moved[groups == each].sum() ** 2 for each in range(50)) * 50 / 49
    tau = found["kendall_c"]
    error = math.sqrt(meat) / len(scores) / (1 - tau**2)
    expected = 2 * stats.t.sf(math.atanh(tau) / error, 49)
    assert found["kendall_c_p"] == pytest.approx(expected, rel=1e-9)


def test_the_only_group_that_varies_cannot_be_left_out():
    """All scores but those of one image are equal: there is an interval nevertheless."""
    scores = np.array([1.0, 2.0, *np.zeros(30)])
    groups = np.array([0, 0, *range(1, 31)])
    found = correlations.correlate_ratings(scores, np.arange(32.0), groups)
    assert found["intervals"]["pearson"][0] < found["pearson"] < found["intervals"]["pearson"][1]


def _clusters(*lines):
    rated = [RatedCaption("x", references, (1.0,), image) for references, image in lines]
    judgements = Judgements(rated, [JudgedPair(("p", "q"), "x", "y", "a", None, "1.jpg")])
    found = cluster_lines(judgements, scoring.collect_captions(judgements))
    return [*found.rated.tolist(), *found.pairs.tolist()]


def test_lines_hang_together_by_image_and_else_by_references():
    found = _clusters(
        (("p", "q"), "1.jpg"),
        (("p",), "1.jpg"),  # other references of the same image
        (("q", "p"), None),  # the references of an image that another line names
        (("r",), None),
        (("r",), None),
        (("r",), "2.jpg"),
        (("s",), None),
    )
    assert found == [0, 0, 0, 1, 1, 1, 2, 0]
