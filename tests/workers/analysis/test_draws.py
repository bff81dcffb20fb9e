"""What a board knows of two systems by the draws that are kept of each. Oracles: Student's paired
test; the standard error of many resamples.
"""

import base64
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from helpers.random_statistics import scores, statistics
from service.contract.metrics import draws
from workers.analysis import resamples
from workers.analysis.comparison import compare_scores

GUIDE = Path(__file__).parents[3] / "deploy" / "guide" / "comparisons.md"


def _draws(given):
    kept = resamples.pack_draws(resamples.resample_sums(resamples.sum_scores(given)))
    return {name: draws.unpack_draws(base64.b64decode(text)) for name, text in kept.items()}


def _pair(images, seed, alike=0.2):
    """Two systems that differ by 1.5 to 2.5 standard errors; `alike`: their own share."""
    rng = np.random.default_rng([seed, images])
    of_image, gaps = rng.normal(0.5, 0.2, images), rng.gamma(1, alike, images)
    gaps += rng.uniform(1.5, 2.5) * np.std(gaps) / np.sqrt(images) - gaps.mean()
    return of_image + gaps, of_image


def _judged(images, seed):
    """What the board says of a pair, what a comparison says, and how far off the error is."""
    values = _pair(images, seed)
    given = [scores("rouge_l", {"rouge_l": each}) for each in values]
    kept = tuple(_draws(each)["rouge_l"] for each in given)
    error = draws.compute_standard_error(*kept) / stats.sem(values[0] - values[1]) - 1
    says = draws.do_scores_differ(tuple(each.corpus["rouge_l"] for each in given), kept)
    return says, compare_scores(*given)["rouge_l"].p, error


@pytest.mark.parametrize("scales", [(1e-170, 1e-170), (1e200, 1e200), (1e-170, 1), (1e-320, 1)])
def test_scores_may_be_as_small_and_as_large_as_numbers_are(scales):
    """Their squares are none: a product of many probabilities is 1e-170."""
    rng = np.random.default_rng(3)
    pair = rng.normal(1, 0.1, (2, draws.DRAWS))
    kept = [draws.unpack_draws(draws.pack_draws(list(each))) for each in pair]
    scaled = [
        draws.unpack_draws(draws.pack_draws(list(scale * each)))
        for scale, each in zip(scales, pair, strict=True)
    ]
    largest = max(scales)
    if scales[0] == scales[1]:
        expected = largest * draws.compute_standard_error(*kept)
    else:  # the smaller one's part is lost in the larger one's
        expected = largest * np.std(pair[1], ddof=1)
    assert draws.compute_standard_error(*scaled) == pytest.approx(expected, rel=0.01)
    draws.do_scores_differ(scales, tuple(scaled))


@pytest.mark.slow
@pytest.mark.parametrize("images", [200, 1000])
def test_a_board_differs_from_a_comparison_only_near_the_border(images):
    """Of 300 pairs that differ by 1.5 to 2.5 standard errors, in as many as the guide says."""
    said = re.search(rf" in (\d+) \(of {images:,}\b", GUIDE.read_text("utf-8"))
    found = [_judged(images, seed) for seed in range(300)]
    unlike = [p for says, p, _ in found if says != (p < 0.05)]
    assert len(unlike) == pytest.approx(int(said[1]), abs=1)  # the border's own may turn
    assert all(0.03 < p < 0.09 for p in unlike), sorted(unlike)


@pytest.mark.parametrize("family", ["bleu", "meteor", "cider_d"])
def test_of_any_metric_they_are_its_own_resamples(family):
    given = [scores(family, statistics(family, 60, seed)) for seed in (1, 2)]
    kept = [_draws(each) for each in given]
    many = [
        resamples.join_blocks(
            resamples.sum_scores(each).drawn(w) for w in resamples.draw_resamples(60, 3000, 5)
        )
        for each in given
    ]
    for name in given[0].corpus:
        expected = np.std(many[0][name] - many[1][name])
        found = draws.compute_standard_error(kept[0][name], kept[1][name])
        assert found == pytest.approx(expected, rel=0.2), name


def test_packed_draws_are_small_and_lose_less_than_a_step():
    given = np.random.default_rng(0).normal(30.0, 0.7, draws.DRAWS)
    packed = draws.pack_draws(given.tolist())
    assert len(packed) == 265
    left = given - given.mean()
    step = np.abs(left).max() / 127
    assert draws.unpack_draws(packed).values == pytest.approx(left, abs=0.51 * step)
    assert draws.unpack_draws(draws.pack_draws([2.0] * draws.DRAWS)).values == [0.0] * draws.DRAWS


def test_draws_of_another_kind_are_not_held_against_ours():
    packed = draws.pack_draws([1.0, 2.0] * (draws.DRAWS // 2))
    assert draws.unpack_draws(b"\x02" + packed[1:]) is None
    assert draws.unpack_draws(packed[:-1]) is None


def test_a_score_that_a_resample_makes_infinite_has_none():
    kept = statistics("wmd", 4) | {"measured": np.array([0.0, 1.0, 0.0, 0.0])}
    assert list(_draws(scores("wmd", kept))) == ["wmd"]


def test_the_standard_error_is_that_of_the_difference_of_what_was_packed():
    random = np.random.default_rng(4)
    one, other = random.normal(0, 0.01, draws.DRAWS), random.normal(0, 3.0, draws.DRAWS)
    for pair in (
        (one, other),
        (other, other + one),
        (one, 0 * one),
        (0 * one, 0 * one),
        (one, one),
    ):
        kept = [draws.unpack_draws(draws.pack_draws(each.tolist())) for each in pair]
        expected = np.subtract(*(each.values for each in kept))
        error = np.linalg.norm(expected) / np.sqrt(draws.DRAWS - 1)
        assert draws.compute_standard_error(*kept) == pytest.approx(error, rel=1e-6, abs=1e-8)
