"""Leaderboards and histories, on either database, from rows as an evaluation's end writes them."""

import csv
import json

import pytest

from helpers import stored_records
from helpers.stored_records import enter_scores, on_split, parts_on
from service.contract.errors import InvalidCursor, InvalidRequest, NotFound, UnknownMetric
from service.engine.records import Records
from service.engine.tables import labels, runs
from service.http import responses
from service.runs import leaderboard
from service.runs.score_boards import BoardQuery
from service.stored import datasets

SIGNATURE = "cider_d|refs:5|tok:ptb|v:2"
FACTS = {"splits": {"test": {"images": 9, "references": 45}}, "features": None}


@pytest.fixture
def records(engine):
    records = Records(engine)
    stored_records.add_version(records, "coco", "sha256:" + "a" * 64, FACTS)
    return records


def _ended(records, at, value, low=None, high=None, **facts):
    """One that ended at the second `at` with one score."""
    identity = f"ev_{at}"
    pinned = datasets.pin_split(records, facts.get("dataset", "coco/test"))
    with records.transaction() as connection:
        connection.execute(
            runs.insert().values(
                id=identity,
                request=json.dumps({"subset": facts.get("subset", False)}),
                kind="evaluation",
                **on_split(pinned),
                checkpoint=facts.get("checkpoint"),
                status=facts.get("status", "succeeded"),
                version=3,
                warnings="[]",
                deadline=at + 60,
                created_at=at,
                finished_at=at + 1,
            )
        )
        enter_scores(
            connection,
            identity,
            {facts.get("metric", "cider_d"): (value, low, high)},
            facts.get("signature", SIGNATURE),
        )
        for name, text in facts.get("labels", {}).items():
            marked = {"run_id": identity, "name": name, "value": text, "created_at": at}
            connection.execute(labels.insert().values(**marked))
    return identity


def _asked(dataset="coco", split=None, metric="cider_d", signature=None, **labels_):
    return BoardQuery(dataset, split, metric, signature, labels_)


def _board(records, **asked):
    found = leaderboard.build_leaderboard(parts_on(records), _asked(**asked))
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
    found = leaderboard.build_leaderboard(parts_on(records), _asked())
    assert [each.evaluation for each in found.items] == ["ev_5"]
    assert (found.signature, found.others) == (SIGNATURE, {"cider_d|tok:none|v:2": 1})
    assert _board(records, signature="cider_d|tok:none|v:2") == [("ev_1", 1, False)]


def test_the_same_checkpoint_with_the_same_score_stands_once(records):
    same = {"checkpoint": "sha256:" + "c" * 64}
    _ended(records, 1, 0.5, 0.4, 0.6, **same)
    _ended(records, 2, 0.5, 0.4, 0.6, **same)
    _ended(records, 3, 0.7, 0.6, 0.8, **same)  # decoded otherwise
    assert len(_board(records)) == 2
    found = leaderboard.build_history(parts_on(records), _asked())
    assert [each.evaluation for each in found.items] == ["ev_3", "ev_2", "ev_1"]


def test_labels_filter_and_are_shown(records):
    _ended(records, 1, 0.5, labels={"branch": "main", "team": "a"})
    _ended(records, 2, 0.6, labels={"branch": "main"})
    _ended(records, 3, 0.7)
    found = leaderboard.build_leaderboard(parts_on(records), _asked(branch="main"))
    assert [each.evaluation for each in found.items] == ["ev_2", "ev_1"]
    assert found.items[1].labels == {"branch": "main", "team": "a"}
    assert _board(records, branch="main", team="a") == [("ev_1", 1, False)]
    assert _board(records, branch="none") == []


def test_pages_are_one_list_and_ranks_go_on(records):
    for at in range(1, 8):
        _ended(records, at, at / 10, at / 10 - 0.12, at / 10 + 0.12)
    whole = leaderboard.build_leaderboard(parts_on(records), _asked()).items
    found, cursor = [], None
    while True:
        page = leaderboard.build_leaderboard(parts_on(records), _asked(), 3, cursor)
        found += page.items
        cursor = page.next
        if cursor is None:
            break
    assert tuple(found) == whole
    assert len(whole) == 7
    with pytest.raises(InvalidCursor):
        leaderboard.build_history(
            parts_on(records),
            _asked(),
            3,
            leaderboard.build_leaderboard(parts_on(records), _asked(), 3).next,
        )


def test_a_sheet_says_what_the_page_says(records):
    _ended(records, 1, 0.5, 0.4, 0.6, labels={"note": 'a "b", c\né'})
    rows = leaderboard.build_scores_table(
        leaderboard.build_leaderboard(parts_on(records), _asked())
    )
    sent = responses.answer_csv(rows).body.decode()
    (row,) = csv.DictReader(sent.splitlines(keepends=True))
    assert row.pop("created_at").startswith("1970-01-01T00:00:01")
    assert json.loads(row.pop("labels")) == {"note": 'a "b", c\né'}
    assert row == {
        "rank": "1",
        "tied": "False",
        "evaluation": "ev_1",
        "checkpoint": "",
        "value": "0.5",
        "low": "0.4",
        "high": "0.6",
    }
    assert (
        len(
            list(
                leaderboard.build_scores_table(
                    leaderboard.build_history(parts_on(records), _asked())
                )
            )
        )
        == 2
    )


def test_the_split_is_the_only_one_or_test(records):
    splits = {name: {"images": 1, "references": 1} for name in ("val", "dev")}
    stored_records.add_version(
        records, "two", "sha256:" + "b" * 64, {"splits": splits, "features": None}
    )
    _ended(records, 1, 0.5, dataset="two/val")
    with pytest.raises(InvalidRequest, match="dev, val"):
        leaderboard.build_leaderboard(parts_on(records), _asked("two"))
    assert len(leaderboard.build_leaderboard(parts_on(records), _asked("two", "val")).items) == 1
    with pytest.raises(NotFound, match="no split"):
        leaderboard.build_leaderboard(parts_on(records), _asked("coco", "val"))
    stored_records.add_version(records, "coco", "sha256:" + "d" * 64, FACTS)
    assert leaderboard.build_leaderboard(parts_on(records), _asked()).dataset.version == "v2"
    assert (
        leaderboard.build_leaderboard(parts_on(records), _asked("coco@v1")).dataset.version == "v1"
    )


def test_what_cannot_be_ranked_is_refused(records):
    with pytest.raises(UnknownMetric, match="cider_d"):
        leaderboard.build_leaderboard(parts_on(records), _asked(metric="cider_dd"))
    with pytest.raises(InvalidRequest, match="neither"):
        leaderboard.build_leaderboard(parts_on(records), _asked(metric="caption_length"))
    assert leaderboard.build_history(parts_on(records), _asked(metric="caption_length")).items == ()


def _none(records, **asked):
    parts, asked = parts_on(records), _asked(**asked)
    board, history = (
        leaderboard.build_leaderboard(parts, asked),
        leaderboard.build_history(parts, asked),
    )
    assert board.none_because == history.none_because
    assert (board.none_because is None) == bool(board.items)
    return board.none_because


def test_the_labels_of_the_latest_evaluations_come_first(records):
    for at, name in enumerate(["b", "a", "d", "c"], 1):
        _ended(records, at, 0.5, labels={"branch": name})
    assert _none(records, x="y").endswith(
        "; the latest labels are branch=c, branch=d, branch=a, branch=b"
    )


def test_an_empty_board_calls_metrics_as_answers_do(records):
    _ended(records, 1, 9.5, metric="perplexity")
    assert _none(records).endswith("has cider_d yet; there are perplexity")


def test_an_empty_board_says_what_there_is_instead(records):
    _ended(records, 1, 0.5, subset=True)
    begin = "no evaluation of the whole split has scores yet; POST /v1/evaluations begins one"
    assert _none(records) == begin
    for at, metric in enumerate(["meteor", "bleu_1", "rouge_l", "spice", "cider", "spider"], 2):
        _ended(records, at, 0.5, metric=metric)
    _ended(records, 8, 0.5, metric="spider", labels={"branch": "main"})
    lacks = "no evaluation of the whole split has cider_d yet; there are "
    assert _none(records) == f"{lacks}spider, bleu_1, cider, meteor, rouge_l, 1 more"
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
