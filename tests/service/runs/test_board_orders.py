"""Orders of a leaderboard, its best evaluations by each metric, and what it is held against."""

import random
from dataclasses import replace

import pytest

from helpers import stored_records
from helpers.stored_records import enter_run, enter_scores, parts_on
from prescore.models.metrics import MetricHealth
from prescore.models.probes import ProbeRow
from service.contract.errors import InvalidCursor
from service.engine import summaries
from service.runs import leaderboard, probes, ranking, score_boards
from service.runs.score_boards import BoardQuery
from service.stored import datasets

ASKED = BoardQuery("coco", None, "cider_d", None, {}, ("perplexity", "caption_length", "meteor"))
MARKS = [
    {"run": "b", "step": "10", "name": "z"},
    {"run": "b", "step": "epoch 9"},
    {"run": "B", "epoch": "9.5"},
    {"run": "b"},
    {"name": "Ab", "file": "z"},
    {"file": "ab.json", "branch": "z"},
    {"branch": "main", "commit": "c2"},
    {"branch": "main", "commit": "c1"},
    {"step": "3"},
    {},
    {"name": "q", "step": "9"},  # of no training
    {"name": "q", "step": "1"},
]
VALUES = [0.95, 0.3, 0.6, 0.9, 0.2, 0.5, 0.8, 0.1, 0.4, 0.7, 0.05, 0.01]
BY_RANK = [0, 3, 6, 9, 2, 5, 8, 1, 4, 7, 10, 11]
BY_NAME = [4, 5, 3, 1, 2, 0, 8, 9, 7, 6, 10, 11]


@pytest.fixture
def records(on_either):
    stored_records.add_version(on_either, "coco", "a")
    return on_either


def _enter(records, at, scores, marks=None, checkpoint=None, created_at=None):
    pinned = datasets.pin_split(records, "coco/test")
    facts = {
        "checkpoint": checkpoint,
        "created_at": float(at if created_at is None else created_at),
    }
    with records.transaction() as connection:
        enter_run(connection, f"ev_{at}", pinned, {}, marks, **facts)
        for metric, value in scores.items():
            enter_scores(connection, f"ev_{at}", {metric: (value, None, None)}, f"{metric}|v:2")


def _pages(records, asked, limit):
    cursor = None
    while True:
        page = leaderboard.build_leaderboard(parts_on(records), asked, limit, cursor)
        yield page
        cursor = page.next
        if cursor is None:
            return


def _places(items):
    return [int(item.evaluation.removeprefix("ev_")) for item in items]


@pytest.mark.parametrize("limit", [3, 10])
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("name", BY_NAME),
        ("oldest", [*range(12)]),
        ("newest", [*reversed(range(12))]),
        ("rank", BY_RANK),
    ],
)
def test_pages_of_each_order_have_every_row_once_with_its_rank(records, order, expected, limit):
    for at, marks in enumerate(MARKS):
        _enter(records, at, {"cider_d": VALUES[at]}, marks)
    ranks = {
        item.evaluation: item.rank for page in _pages(records, ASKED, 50) for item in page.items
    }
    found = [
        item for page in _pages(records, replace(ASKED, order=order), limit) for item in page.items
    ]
    assert _places(found) == expected
    assert {item.evaluation: item.rank for item in found} == ranks


def test_pages_go_on_where_they_were_while_others_are_added_and_removed(records):
    for at in range(1, 7):
        _enter(records, at, {"cider_d": at / 10})
    asked = replace(ASKED, order="newest")
    page = leaderboard.build_leaderboard(parts_on(records), asked, 2)
    _enter(records, 9, {"cider_d": 0.05})
    following = leaderboard.build_leaderboard(parts_on(records), asked, 2, page.next)
    assert (_places(page.items), _places(following.items)) == ([6, 5], [4, 3])


def test_a_cursor_is_of_its_order(records):
    for at in range(1, 4):
        _enter(records, at, {"cider_d": at / 10})
    orders = "rank", "newest", "oldest", "name"
    for order in orders:
        page = leaderboard.build_leaderboard(parts_on(records), replace(ASKED, order=order), 1)
        for other in orders:
            asked = replace(ASKED, order=other)
            if other == order:
                leaderboard.build_leaderboard(parts_on(records), asked, 1, page.next)
                continue
            with pytest.raises(InvalidCursor):
                leaderboard.build_leaderboard(parts_on(records), asked, 1, page.next)


@pytest.mark.parametrize(("batch", "seed"), [(1, 0), (3, 1), (200, 2)])
def test_the_firsts_are_the_best_values_of_the_whole_board(records, monkeypatch, seed, batch):
    """With metrics that another evaluation of the checkpoint has, and evaluations beside."""
    monkeypatch.setattr(score_boards, "_LOOKED_AT", batch)
    rng = random.Random(seed)
    for at in range(30):
        names = rng.sample(["cider_d", "perplexity", "caption_length", "meteor"], rng.randint(1, 4))
        scores = {name: rng.randint(1, 12) / 10 for name in names}
        checkpoint = rng.choice([None, *(f"sha256:{c:064}" for c in range(8))])
        _enter(records, at, scores, {"x": str(at % 2)}, checkpoint)
    for labels in ({}, {"x": "1"}):
        asked = replace(ASKED, labels=labels)
        pages = list(_pages(records, asked, 4))
        items = [item for page in pages for item in page.items]
        assert len(pages) > 1
        expected = {"cider_d": items[0].evaluation}
        for metric, sign in (("perplexity", 1), ("meteor", -1)):
            having = [item for item in items if metric in item.scores]
            best = min(having, key=lambda one: (sign * one.scores[metric].value, one.created_at))
            expected[metric] = best.evaluation
        assert [page.firsts for page in pages] == [expected, *[{}] * (len(pages) - 1)]


def test_an_empty_board_has_no_firsts(records):
    board = leaderboard.build_leaderboard(parts_on(records), ASKED)
    assert (board.firsts, board.detectable, board.items) == ({}, None, ())
    assert board.references.model_dump() == {"human": {}, "constant": {}}
    assert board.constant_caption is None


def _task(kind, summary):
    return {"kind": kind, "status": "done", "name": kind, "summary": summary.model_dump_json()}


def _enter_probes(records, at, metrics, health, text, status="succeeded"):
    pinned = datasets.pin_split(records, "coco/test")
    rows = [
        ProbeRow(probe="single", name=name, scores={}, text=said)
        for name, said in (("sentence of cider", "another"), ("single sentence", text))
    ]
    known = {name: MetricHealth(human=one, constant=two) for name, (one, two) in health.items()}
    tasks = [
        _task("probe", probes.ProbeSummary(rows=rows)),
        _task("health", probes.HealthSummary(health=known)),
    ]
    marks = {f"probed {name}": "usual" for name in metrics}
    facts = {"kind": "probes", "created_at": at, "finished_at": at, "status": status}
    with records.transaction() as connection:
        packed = summaries.pack_json(tasks)
        enter_run(connection, f"pb_{at}", pinned, {}, marks, snapshot=packed, **facts)


def test_the_board_is_held_against_people_and_one_sentence_of_the_latest_probes(records):
    _enter(records, 1, {"cider_d": 0.5})
    names = ["cider_d", "meteor", "perplexity"]
    _enter_probes(records, 1, names, {"cider_d": (0.1, 0.2), "meteor": (0.3, None)}, "old")
    _enter_probes(records, 2, ["cider_d"], {"cider_d": (0.8, 0.04), "bleu_1": (1, 1)}, "a man")
    _enter_probes(records, 3, names, {"cider_d": (9, 9)}, "failed", status="failed")
    board = leaderboard.build_leaderboard(parts_on(records), ASKED)
    assert board.references.human == {"cider_d": 0.8, "meteor": 0.3}
    assert board.references.constant == {"cider_d": 0.04}
    assert board.constant_caption == "a man"


def test_a_sheet_computes_only_what_it_has_columns_for(records, monkeypatch):
    for at in range(1, 4):
        _enter(records, at, {"cider_d": at / 10, "meteor": at / 20})
    calls = set()

    def watch(module, name):
        compute = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: calls.add(name) or compute(*given))

    watch(ranking, "compute_detectable")
    watch(score_boards, "find_first_beside")
    watch(probes, "find_references")
    names, *rows = leaderboard.build_leaderboard_table(parts_on(records), ASKED)
    assert [row[names.index("evaluation")] for row in rows] == ["ev_3", "ev_2", "ev_1"]
    assert calls == set()
    leaderboard.build_leaderboard(parts_on(records), ASKED)
    assert len(calls) == 3
