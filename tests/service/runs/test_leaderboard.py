"""Leaderboards and histories, on either database, from rows as an evaluation's end writes them."""

import csv
import json

import pytest

from helpers import stored_records
from helpers.stored_records import enter_run, enter_scores, parts_on
from service.contract.errors import InvalidCursor, InvalidRequest, NotFound, UnknownMetric
from service.http import responses
from service.runs import leaderboard
from service.runs.score_boards import BoardQuery
from service.stored import datasets

SIGNATURE = "cider_d|refs:5|tok:ptb|v:2"


@pytest.fixture
def records(on_either):
    stored_records.add_version(on_either, "coco", "a")
    return on_either


def _ended(records, at, value, low=None, high=None, *, metric="cider_d", **facts):
    """One that ended at the second `at` with one score."""
    identity, signature = f"ev_{at}", facts.pop("signature", SIGNATURE)
    pinned = datasets.pin_split(records, facts.pop("dataset", "coco/test"))
    request = {"subset": facts.pop("subset", False)}
    times = {"created_at": at, "finished_at": at + 1}
    with records.transaction() as connection:
        enter_run(connection, identity, pinned, request, **times, **facts)
        enter_scores(connection, identity, {metric: (value, low, high)}, signature)


def _asked(dataset="coco", split=None, metric="cider_d", signature=None, **labels_):
    return BoardQuery(dataset, split, metric, signature, labels_)


def _shown(records, *page, **asked):
    return leaderboard.build_leaderboard(parts_on(records), _asked(**asked), *page)


def _history(records, *page, **asked):
    return leaderboard.build_history(parts_on(records), _asked(**asked), *page)


def _ids(found):
    return [each.evaluation for each in found.items]


def _board(records, **asked):
    found = _shown(records, **asked)
    return [(each.evaluation, each.rank, each.tied) for each in found.items]


def test_a_rank_is_shared_within_the_interval_of_its_best(records):
    _ended(records, 1, 0.50, 0.47, 0.53)
    _ended(records, 2, 0.90, 0.86, 0.94)
    _ended(records, 3, 0.55, 0.52, 0.58)
    _ended(records, 4, 0.45, 0.42, 0.48)  # overlaps the one above it, not the best of its rank
    _ended(records, 5, 0.20, 0.17, 0.23)
    expected = [("ev_2", 1, False), ("ev_3", 2, True), ("ev_1", 2, True)]
    assert _board(records) == [*expected, ("ev_4", 4, False), ("ev_5", 5, False)]


def test_without_intervals_equals_alone_are_ties(records):
    for at, value in enumerate([0.3, 0.5, 0.3000001, 0.5], 1):
        _ended(records, at, value, checkpoint=f"sha256:{at:064}")
    expected = [("ev_2", 1, True), ("ev_4", 1, True), ("ev_3", 3, False), ("ev_1", 4, False)]
    assert _board(records) == expected


def test_a_metric_that_is_better_low_is_ranked_so_and_found_by_its_alias(records):
    _ended(records, 1, 12.0, metric="perplexity")
    _ended(records, 2, 9.0, metric="geomean_join_pplx_none")
    for name in ("perplexity", "geomean_join_pplx_none"):
        assert [each[0] for each in _board(records, metric=name)] == ["ev_2", "ev_1"]


def test_other_signatures_parts_and_canceled_ones_are_left_out(records):
    _ended(records, 1, 0.9, signature="cider_d|tok:none|v:2")
    _ended(records, 2, 0.8, subset=True)
    _ended(records, 3, 0.7, status="canceled")
    _ended(records, 4, None)
    _ended(records, 5, 0.1, status="failed")  # by another metric: this score stands
    found = _shown(records)
    assert _ids(found) == ["ev_5"]
    assert (found.signature, found.others) == (SIGNATURE, {"cider_d|tok:none|v:2": 1})
    assert _board(records, signature="cider_d|tok:none|v:2") == [("ev_1", 1, False)]


def test_the_same_checkpoint_with_the_same_score_stands_once(records):
    same = {"checkpoint": "sha256:" + "c" * 64}
    _ended(records, 1, 0.5, 0.4, 0.6, **same)
    _ended(records, 2, 0.5, 0.4, 0.6, **same)
    _ended(records, 3, 0.7, 0.6, 0.8, **same)  # decoded otherwise
    first, second = _shown(records).items
    assert (first.evaluation, first.equal, first.equal_ones) == ("ev_3", 0, ())
    assert (second.evaluation, second.equal, second.equal_ones) == ("ev_1", 1, ("ev_2",))
    assert _ids(_history(records)) == ["ev_3", "ev_2", "ev_1"]


def test_of_many_equal_scores_the_first_are_named_and_only_those_with_the_labels_count(records):
    for at in range(1, 31):
        _ended(records, at, 0.5, 0.4, 0.6, marks={"half": str(at % 2)})
    (row,) = _shown(records).items
    assert (row.evaluation, row.equal) == ("ev_1", 29)
    assert list(row.equal_ones) == [f"ev_{at}" for at in range(2, 22)]
    (row,) = _shown(records, half="0").items
    assert (row.evaluation, row.equal) == ("ev_2", 14)
    assert list(row.equal_ones) == [f"ev_{at}" for at in range(4, 31, 2)]


def test_labels_filter_and_are_shown(records):
    _ended(records, 1, 0.5, marks={"branch": "main", "team": "a"})
    _ended(records, 2, 0.6, marks={"branch": "main"})
    _ended(records, 3, 0.7)
    found = _shown(records, branch="main")
    assert _ids(found) == ["ev_2", "ev_1"]
    assert found.items[1].labels == {"branch": "main", "team": "a"}
    assert _board(records, branch="main", team="a") == [("ev_1", 1, False)]
    assert _board(records, branch="none") == []


def test_a_page_of_a_board_leads_to_no_page_of_a_history(records):
    for at in (1, 2):
        _ended(records, at, at / 10)
    assert _ids(_history(records, 1, _history(records, 1).next)) == ["ev_1"]
    with pytest.raises(InvalidCursor):
        _history(records, 1, _shown(records, 1).next)


def test_a_sheet_says_what_the_page_says(records):
    _ended(records, 1, 0.5, 0.4, 0.6, marks={"note": 'a "b", c\né'})
    rows = leaderboard.build_leaderboard_table(parts_on(records), _asked())
    sent = responses.answer_csv(rows).body.decode()
    (row,) = csv.DictReader(sent.splitlines(keepends=True))
    assert row.pop("created_at").startswith("1970-01-01T00:00:01")
    assert json.loads(row.pop("labels")) == {"note": 'a "b", c\né'}
    assert row == {
        "dataset": "coco@v1/test",
        "metric": "cider_d",
        "rank": "1",
        "tied": "False",
        "equal": "0",
        "name": "ev_1",
        "evaluation": "ev_1",
        "checkpoint": "",
        "value": "0.5",
        "low": "0.4",
        "high": "0.6",
        "tied_with_first": "False",
        "difference_from_first": "",
        "difference_low": "",
        "difference_high": "",
        "p_against_first": "",
    }
    assert len(list(leaderboard.build_history_table(parts_on(records), _asked()))) == 2


NAMES = [
    ({"run": "warm", "step": "step-12000", "file": "a"}, "warm, step 12,000"),
    ({"run": "warm", "epoch": "2.5"}, "warm, step 2.5"),
    ({"run": "warm"}, "warm"),
    ({"name": "mine", "file": "a"}, "mine"),
    ({"branch": "main", "commit": "0123456789"}, "main, 0123456"),
    ({"commit": "0123456789"}, "ev_6"),
]


def test_a_sheet_names_its_systems_and_tests_them_against_the_first(records):
    for at, (marks, _) in enumerate(NAMES, 1):
        _ended(records, at, 1 - at / 10, marks=marks)
    names, *rows = leaderboard.build_leaderboard_table(parts_on(records), _asked())
    sheet = [dict(zip(names, row, strict=True)) for row in rows]
    assert [row["name"] for row in sheet] == [name for _, name in NAMES]
    items = _shown(records).items
    assert [row["tied_with_first"] for row in sheet] == [one.tied_with_first for one in items]
    for row, item in zip(sheet, items, strict=True):
        test = item.against_first
        cells = [None] * 4 if test is None else [test.difference, *test.interval, test.p]
        shown = ("difference_from_first", "difference_low", "difference_high", "p_against_first")
        assert [row[name] for name in shown] == cells


def test_the_split_is_the_only_one_or_test(records):
    facts = {name: {"images": 1, "references": 1} for name in ("val", "dev")}
    stored_records.add_version(records, "two", "b", {"splits": facts, "features": None})
    _ended(records, 1, 0.5, dataset="two/val")
    with pytest.raises(InvalidRequest, match="dev, val"):
        _shown(records, dataset="two")
    assert len(_board(records, dataset="two", split="val")) == 1
    with pytest.raises(NotFound, match="no split"):
        _shown(records, dataset="coco", split="val")
    stored_records.add_version(records, "coco", "d")
    assert _shown(records).dataset.version == "v2"
    assert _shown(records, dataset="coco@v1").dataset.version == "v1"


def test_what_cannot_be_ranked_is_refused(records):
    with pytest.raises(UnknownMetric, match="cider_d"):
        _shown(records, metric="cider_dd")
    with pytest.raises(InvalidRequest, match="neither"):
        _shown(records, metric="caption_length")
    assert _history(records, metric="caption_length").items == ()


def _none(records, **asked):
    board, history = _shown(records, **asked), _history(records, **asked)
    assert board.none_because == history.none_because
    assert (board.none_because is None) == bool(board.items)
    return board.none_because


def test_the_labels_of_the_latest_evaluations_come_first(records):
    for at, name in enumerate(["b", "a", "d", "c"], 1):
        _ended(records, at, 0.5, marks={"branch": name})
    assert _none(records, x="y").endswith(
        "; the latest labels are branch=c, branch=d, branch=a, branch=b"
    )


def test_an_empty_board_says_what_there_is_instead(records):
    _ended(records, 1, 0.5, subset=True)
    begin = "no evaluation of the whole split has scores yet; POST /v1/evaluations begins one"
    assert _none(records) == begin
    for at, metric in enumerate(
        ["meteor", "bleu_1", "rouge_l", "spice", "perplexity", "spider"], 2
    ):
        _ended(records, at, 0.5, metric=metric)
    _ended(records, 8, 0.5, metric="spider", marks={"branch": "main"})
    lacks = "no evaluation of the whole split has cider_d yet; there are "
    assert _none(records) == f"{lacks}spider, bleu_1, perplexity, meteor, rouge_l, 1 more"
    assert _none(records, branch="mian") == _none(records)
    assert _none(records, metric="spider", branch="main") is None
    no_label = "no score has the label branch=mian; did you mean branch=main?"
    assert _none(records, metric="spider", branch="mian") == no_label
    assert _none(records, metric="spider", x="\x1b", y="2") == (
        r"no score has the labels x=\x1b and y=2; the latest labels are branch=main"
    )
    assert (
        _none(records, metric="spice", a="b") == "no score has the label a=b; no score has a label"
    )
    assert _none(records, metric="spice", signature="other") == (
        "no score of spice has this signature; `others` has those that there are"
    )
