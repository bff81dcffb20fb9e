"""Evaluations that need attention, of rows as evaluations leave them."""

import json
import time

import pytest

from helpers import stored_records
from helpers.stored_records import enter_checkpoint, enter_run, enter_scores, enter_task, parts_on
from prescore.models.overviews import DAYS_LOOKED_AT, LATEST_LOOKED_AT
from service.contract.results import CommonCaption
from service.engine import history, summaries
from service.runs import attention, board_entries, leaderboard, training_lists
from service.runs.score_boards import BoardQuery
from service.runs.training_lists import TrainingQuery
from service.stored import datasets
from workers.jobs import inference

DAY = 86_400.0
COLLAPSED = {"text": "a man", "images": 20, "of": 30}
ONE_GATE = {"gates": ["cider_d >= 0.5"]}
DECODED = {"decoded": 30, "distinct": 4, "common": COLLAPSED}


@pytest.fixture
def coco(on_either):
    stored_records.add_version(on_either, "coco", "a")
    return on_either


def test_an_end_notes_whether_an_evaluation_has_collapsed(coco):
    """Its row on a board and its step in a training tell it."""
    pinned = datasets.pin_split(coco, "coco/test")
    repeated = {"ev_sent": {"common": COLLAPSED}, "ev_decoded": {}, "ev_plain": {}}
    for step, (name, request) in enumerate(repeated.items()):
        with coco.transaction() as connection:
            enter_run(connection, name, pinned, request, {"run": "a", "step": str(step)})
            enter_scores(connection, name, {"cider_d": (0.3 - step / 10, None, None)}, "x|v:1")
            if name == "ev_decoded":
                enter_task(connection, name, "captions", DECODED)
            tasks = history.tasks_of(connection, [name])[name]
            summaries.fill_summaries(connection, tasks)
            board_entries.enter_scores(connection, name, tasks)
    asked = BoardQuery("coco", "test", "cider_d", None, {})
    board = leaderboard.build_leaderboard(parts_on(coco), asked)
    query = TrainingQuery(None, None, "cider_d", 1)
    (training,) = training_lists.list_trainings(parts_on(coco), query).items
    for rows in (board.items, training.steps):
        told = {row.evaluation: row.is_collapsed for row in rows}
        assert told == {"ev_sent": True, "ev_decoded": True, "ev_plain": False}


def _list(records, limit=20):
    return attention.list_attention(parts_on(records), limit).items


def _enter(connection, pinned, name, ago=1.0, request=None, **columns):
    at = time.time() - ago
    times = {"created_at": at, "finished_at": at + 0.5}
    enter_run(connection, name, pinned, request, {"branch": name}, **{**times, **columns})


def _enter_scored(connection, name, value=0.3):
    scores = {"scores": {"cider_d": value}, "intervals": {}, "signature": "x|v:1"}
    enter_task(connection, name, "cider_d", scores, kind="cider")


def test_each_reason_is_listed_with_its_facts_the_latest_first(coco):
    pinned = datasets.pin_split(coco, "coco/test")
    problem = {"code": "timeout", "detail": "too slow"}
    with coco.transaction() as connection:
        _enter(connection, pinned, "ev_failed", 1, status="failed")
        enter_task(connection, "ev_failed", "x", status="failed", error=json.dumps(problem))
        _enter(connection, pinned, "ev_gate", 2, ONE_GATE)
        _enter_scored(connection, "ev_gate")
        _enter(connection, pinned, "ev_sent", 3, {"common": COLLAPSED})
        _enter(connection, pinned, "ev_decoded", 4)
        enter_task(connection, "ev_decoded", "captions", DECODED)
        for step, value in enumerate((1.0, 2.0, 3.0, 2.0), start=1):
            name, marks = f"ev_{step}", {"run": "a", "step": str(step)}
            times = {"created_at": time.time() - 9 + step, "finished_at": time.time() - 9 + step}
            enter_checkpoint(connection, name, pinned, marks, {"cider_d": (value, 0.1)}, **times)
        _enter(connection, pinned, "ev_right", 6, {"gates": ["cider_d >= 0.1"]})
        _enter_scored(connection, "ev_right")
        _enter(connection, pinned, "ev_plain", 7)
        _enter(connection, pinned, "ev_canceled", 8, {"common": COLLAPSED}, status="canceled")
        running = {"status": "running", "finished_at": None}
        _enter(connection, pinned, "ev_running", 8, {"common": COLLAPSED}, **running)
    found = {item.evaluation: item for item in _list(coco)}
    assert list(found) == ["ev_failed", "ev_gate", "ev_sent", "ev_decoded", "ev_4"]
    kinds = [item.kind for item in found.values()]
    assert kinds == ["failed", "gate", "collapsed", "collapsed", "fall"]
    reasons = ("error", "gate", "caption", "fall")
    told = [[name for name in reasons if getattr(one, name)] for one in found.values()]
    assert told == [["error"], ["gate"], ["caption"], ["caption"], ["fall"]]
    assert found["ev_failed"].error.model_dump() == problem
    assert found["ev_failed"].labels == {"branch": "ev_failed"}
    assert str(found["ev_failed"].dataset) == "coco@v1/test"
    gate = found["ev_gate"].gate
    assert (gate.gate, gate.metric, gate.difference) == ("cider_d >= 0.5", "cider_d", None)
    assert "0.3" in gate.detail
    assert found["ev_sent"].caption.model_dump() == COLLAPSED
    fall = found["ev_4"].fall
    assert (fall.metric, fall.kind, fall.step) == ("cider_d", "step", 4)
    assert [item.evaluation for item in _list(coco, 2)] == ["ev_failed", "ev_gate"]
    assert found["ev_sent"].reason() == "20 of 30 images: a man"
    assert found["ev_4"].reason() == fall.sentence()


def test_an_evaluation_is_listed_for_its_first_reason(coco):
    pinned = datasets.pin_split(coco, "coco/test")
    fall = {"metric": "cider_d", "kind": "step", "step": 1, "value": 1, "expected": 2}
    fallen = json.dumps([{**fall, "difference": -1}, {**fall, "value": 0.1, "difference": -1.9}])
    both = {**ONE_GATE, "common": COLLAPSED}
    with coco.transaction() as connection:
        _enter(connection, pinned, "ev_a", 1, both, status="failed", falls=fallen)
        _enter(connection, pinned, "ev_b", 2, both, falls=fallen)
        _enter_scored(connection, "ev_b")
        _enter(connection, pinned, "ev_c", 3, {"common": COLLAPSED}, falls=fallen)
        _enter(connection, pinned, "ev_d", 4, falls=fallen)
    found = _list(coco)
    assert [item.kind for item in found] == ["failed", "gate", "collapsed", "fall"]
    assert found[3].fall.value == 0.1


def test_only_the_teams_latest_evaluations_of_the_last_days_are_looked_at(coco):
    pinned = datasets.pin_split(coco, "coco/test")
    common = {"common": COLLAPSED}
    with coco.transaction() as connection:
        _enter(connection, pinned, "ev_other", 1, common, team="others")
        _enter(connection, pinned, "ev_late", (DAYS_LOOKED_AT - 0.1) * DAY, common)
        _enter(connection, pinned, "ev_old", (DAYS_LOOKED_AT + 0.1) * DAY, common)
    theirs = parts_on(coco.of("local"))
    names = [one.evaluation for one in attention.list_attention(theirs, 20).items]
    assert names == ["ev_late"]
    with coco.transaction() as connection:
        for number in range(LATEST_LOOKED_AT):
            _enter(connection, pinned, f"ev_{number}", 10 + number)
    assert attention.list_attention(theirs, 20).items == ()


@pytest.mark.parametrize(
    ("captions", "found"),
    [
        (["a"] * 10 + [str(at) for at in range(10)], ("a", 10, 20)),
        (["a"] * 9 + [str(at) for at in range(11)], None),
        (["a"] * 19, None),
        ([], None),
        (["b" * 300] * 30, ("b" * 200, 30, 30)),
    ],
)
def test_a_common_caption_is_that_of_half_of_twenty_images(captions, found):
    common = CommonCaption.find(captions)
    assert (None if common is None else (common.text, common.images, common.of)) == found


def test_a_task_that_decodes_notes_a_common_caption():
    pairs = [[place, "a man" if place < 20 else f"a dog {place}"] for place in range(30)]
    summary = inference._decoded(pairs).summary
    assert summary.common == CommonCaption(**COLLAPSED)
    assert inference._decoded(pairs[15:]).summary.common is None
