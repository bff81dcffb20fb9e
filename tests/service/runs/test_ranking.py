"""Ranks by the paired test, on either database, from rows as an evaluation's end writes them.

Oracle: Student's paired test of the images' scores, of which the draws were made.
"""

import numpy as np
import pytest
from scipy import stats

from helpers import stored_records
from helpers.stored_records import enter_run, enter_scores, parts_on
from service.contract.metrics import catalogue
from service.contract.metrics.draws import DRAWS
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


def _board(records, metric="cider_d", limit=None, cursor=None):
    asked = BoardQuery("coco", None, metric, None, {})
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
