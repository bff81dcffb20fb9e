"""Ranks by the paired test, on either database, from rows as an evaluation's end writes them.

Oracle: Student's paired test of the images' scores, of which the draws were made.
"""

import numpy as np
import pytest
from scipy import stats

from helpers import stored_records
from helpers.stored_records import enter_run, enter_scores, parts_on
from service.contract.metrics import catalogue
from service.contract.metrics.draws import CRITICAL, DRAWS, compute_p
from service.runs import leaderboard, ranking
from service.runs.score_boards import BoardQuery
from service.stored import datasets

IMAGES = 400
WEIGHTS = np.random.default_rng(1).multinomial(IMAGES, np.full(IMAGES, 1 / IMAGES), DRAWS)


@pytest.fixture
def records(on_either):
    stored_records.add_version(on_either, "coco", "a")
    return on_either


def _system(gap, seed, spread=0.05):
    """Scores of images, which are hard or easy for every system."""
    hard = np.random.default_rng(0).normal(0.6, 0.2, IMAGES)
    own = np.random.default_rng([seed]).normal(0, spread, IMAGES)
    return hard + own - own.mean() + gap


def _ended(records, at, images, metric="cider_d", *, drawn=True):
    identity, value, error = f"ev_{at}", float(images.mean()), float(stats.sem(images))
    pinned = datasets.pin_split(records, "coco/test")
    shown = {metric: (value, value - 1.96 * error, value + 1.96 * error)}
    full = catalogue.find_metric(metric).name
    draws = {full: (WEIGHTS @ images / IMAGES).tolist()} if drawn else {}
    with records.transaction() as connection:
        enter_run(connection, identity, pinned, checkpoint=f"sha256:{at:064}", created_at=at)
        enter_scores(connection, identity, shown, f"{metric}|v:2", draws)


def _board(records, metric="cider_d", limit=None, cursor=None, order="rank"):
    asked = BoardQuery("coco", None, metric, None, {}, order=order)
    return leaderboard.build_leaderboard(parts_on(records), asked, limit, cursor)


def _ranks(records, **more):
    items = _board(records, **more).items
    return [(each.evaluation, each.rank, each.tied, each.ranked_by) for each in items]


def test_two_whose_intervals_overlap_are_told_apart_by_their_images(records):
    best, next_, last = _system(0.012, 1), _system(0.0, 2), _system(-0.002, 3)
    assert stats.ttest_rel(best, next_).pvalue < 0.01
    assert stats.ttest_rel(next_, last).pvalue > 0.2
    for at, images in enumerate((next_, best, last), 1):
        _ended(records, at, images)
    expected = [("ev_2", 1, False, "test"), ("ev_1", 2, True, "test"), ("ev_3", 2, True, "test")]
    assert _ranks(records) == expected


def test_what_has_no_draws_is_ranked_by_its_interval_as_ever(records):
    _ended(records, 1, _system(0.012, 1))
    _ended(records, 2, _system(0.0, 2), drawn=False)
    _ended(records, 3, _system(-0.001, 3))
    expected = [(1, True, "test"), (1, True, "intervals"), (3, False, "test")]
    assert [each[1:] for each in _ranks(records)] == expected


def test_one_network_in_two_formats_shares_its_rank(records):
    """Every image a little worse by rounding: a paired test would be sure of it."""
    for at, gap in enumerate((0.0, 0.9e-4 * 0.6, 3e-4 * 0.6), 1):
        _ended(records, at, _system(0.0, 1) + gap)
    assert [each[:3] for each in _ranks(records)] == [
        ("ev_3", 1, False),
        ("ev_2", 2, True),
        ("ev_1", 2, True),
    ]


def test_a_metric_that_is_better_low_is_tested_too(records):
    for at, gap in enumerate((0.02, 0.0, 0.001), 1):
        _ended(records, at, _system(gap, at), "perplexity")
    found = _ranks(records, metric="perplexity")
    assert [each[:3] for each in found] == [
        ("ev_2", 1, True),
        ("ev_3", 1, True),
        ("ev_1", 3, False),
    ]


def test_pages_have_the_ranks_of_the_whole_board_and_deep_ones_are_by_intervals(
    records, monkeypatch
):
    monkeypatch.setattr(ranking, "TESTED", 5)
    for at in range(1, 9):
        _ended(records, at, _system(0.004 * at, at))
    whole, found, cursor = _board(records).items, [], None
    while True:
        page = _board(records, limit=3, cursor=cursor)
        found += page.items
        cursor = page.next
        if cursor is None:
            break
    assert tuple(found) == whole
    assert [each.ranked_by for each in whole] == ["test"] * 5 + ["intervals"] * 3


def test_p_is_that_of_students_t_for_the_number_of_draws():
    for t in (0.0, 0.3, 1.0, CRITICAL, 3.0, 7.0):
        expected = 2 * stats.t.sf(t, DRAWS - 1)
        assert compute_p(t * 0.25, 0.25) == pytest.approx(expected, abs=1e-12)
    assert compute_p(0.1, 0.0) == 0.0


@pytest.mark.parametrize("metric", ["cider_d", "perplexity"])
def test_each_is_tested_against_the_first_as_by_the_paired_test_of_images(records, metric):
    gaps = (0.0, -0.001, -0.008, -0.015)
    sign = catalogue.find_metric(metric).sign
    systems = {f"ev_{at}": _system(sign * gap, at) for at, gap in enumerate(gaps, 1)}
    for at in range(1, 5):
        _ended(records, at, systems[f"ev_{at}"], metric)
    first, *others = _board(records, metric=metric).items
    assert (first.evaluation, first.against_first, first.tied_with_first) == ("ev_1", None, False)
    errors = []
    for item in others:
        moved = systems[item.evaluation] - systems["ev_1"]
        expected, found = stats.ttest_1samp(moved, 0), item.against_first
        errors.append(stats.sem(moved))
        assert found.difference == pytest.approx(moved.mean(), abs=1e-9)
        low, high = found.interval
        assert (low + high) / 2 == pytest.approx(found.difference)
        assert (high - low) / 2 == pytest.approx(1.966 * errors[-1], rel=0.15)
        assert stats.norm.isf(found.p / 2) == pytest.approx(
            stats.norm.isf(expected.pvalue / 2), rel=0.15
        )
        assert item.tied_with_first == (found.p >= 0.05) == (low <= 0 <= high)
    assert [item.tied_with_first for item in others] == [True, False, False]
    detectable = _board(records, metric=metric).detectable
    assert detectable == pytest.approx((1.96 + 0.8416) * np.median(errors), rel=0.15)


def test_one_network_in_two_formats_is_tied_with_the_first(records):
    for at, gap in enumerate((0.0, 0.5e-4 * 0.6), 1):
        _ended(records, at, _system(0.0, 1) + gap)
    _, other = _board(records).items
    assert (other.tied_with_first, other.against_first.p) == (True, 1.0)
    assert other.against_first.interval == (pytest.approx(other.against_first.difference), 0.0)


def test_what_has_no_draws_is_tied_with_the_first_by_its_interval(records):
    _ended(records, 1, _system(0.0, 1))
    _ended(records, 2, _system(-0.001, 2), drawn=False)
    _ended(records, 3, _system(-0.2, 3), drawn=False)
    board = _board(records)
    assert [item.against_first for item in board.items] == [None] * 3
    assert [item.tied_with_first for item in board.items] == [False, True, False]
    assert board.detectable is None


def test_one_of_a_later_rank_may_be_tied_with_the_first(records):
    """It is less sure than the one above it."""
    _ended(records, 1, _system(0.0, 1, spread=0.01))
    _ended(records, 2, _system(-0.004, 2, spread=0.01))
    _ended(records, 3, _system(-0.0045, 3, spread=0.2))
    first, second, third = _board(records).items
    assert [(item.rank, item.tied_with_first) for item in (first, second, third)] == [
        (1, False),
        (2, False),
        (2, True),
    ]


def test_pages_and_orders_have_the_same_tests_against_the_first(records):
    for at in range(1, 9):
        _ended(records, at, _system(0.004 * at, at))
    whole = {item.evaluation: item for item in _board(records).items}
    for order in ("rank", "newest", "oldest", "name"):
        found, cursor = [], None
        while True:
            page = _board(records, limit=3, cursor=cursor, order=order)
            found += page.items
            cursor = page.next
            if cursor is None:
                break
        assert {item.evaluation: item for item in found} == whole
        assert len(found) == len(whole)
