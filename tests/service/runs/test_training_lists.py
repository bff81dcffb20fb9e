"""Lists of trainings of captioners, of rows as evaluations leave them."""

import itertools

import pytest

from helpers import stored_records
from helpers.stored_records import enter_checkpoint, enter_run, enter_task, parts_on
from prescore.models.overviews import MOST_STEPS, BestStep, TrainingStep
from service.runs import training_lists
from service.runs.training_lists import TrainingQuery, thin_steps
from service.stored import datasets


@pytest.fixture
def coco(on_either):
    stored_records.add_version(on_either, "coco", "a")
    return on_either


def _list(records, dataset=None, metric=None, limit=20, team=None):
    parts = parts_on(records if team is None else records.of(team))
    asked = TrainingQuery(dataset, metric, "cider_d", limit)
    return training_lists.list_trainings(parts, asked).items


def _enter(records, run, values, metric="cider_d", split="coco/test", at=1.0, **columns):
    pinned = datasets.pin_split(records, split)
    with records.transaction() as connection:
        for step, value in enumerate(values, start=1):
            marks, name = {"run": run, "step": str(step)}, f"ev_{run}{step}"
            scores = {metric: (value, 0.1)}
            when = {"created_at": at + step / 100, **columns}
            enter_checkpoint(connection, name, pinned, marks, scores, **when)


def test_a_training_has_its_scores_over_steps_its_best_and_its_falls(coco):
    _enter(coco, "a", (1, 3, 2, 2.5))
    (found,) = _list(coco)
    assert (found.run, str(found.dataset)) == ("a", "coco@v1/test")
    assert (found.metric, found.higher_is_better, found.checkpoints) == ("cider_d", True, 4)
    assert [(one.step, one.value, one.is_fallen) for one in found.steps] == [
        (1, 1, False),
        (2, 3, False),
        (3, 2, True),
        (4, 2.5, False),
    ]
    assert [one.fall and one.fall.kind for one in found.steps] == [None, None, "trend", None]
    assert found.steps[0].interval == (pytest.approx(0.804), pytest.approx(1.196))
    assert found.best.model_dump() == {"step": 2, "evaluation": "ev_a2", "value": 3}
    assert (found.forecast, found.running, found.latest_at.timestamp()) == (None, 0, 1.04)


def test_a_step_tells_a_fall_by_another_metric(coco):
    pinned = datasets.pin_split(coco, "coco/test")
    with coco.transaction() as connection:
        for step, meteor in enumerate((1, 3, 2, 2.5), start=1):
            scores = {"cider_d": (step, 0.1), "meteor": (meteor, 0.1)}
            marks = {"run": "a", "step": str(step)}
            enter_checkpoint(connection, f"ev_{step}", pinned, marks, scores)
    (found,) = _list(coco)
    told = [(one.is_fallen, one.fall and one.fall.metric) for one in found.steps]
    assert told == [(False, None), (False, None), (False, "meteor"), (False, None)]


def test_a_checkpoint_that_runs_has_a_forecast(coco):
    _enter(coco, "a", (1, 2))
    pinned = datasets.pin_split(coco, "coco/test")
    forecast = {
        "cider_d": {"value": 2.6, "interval": [2.0, 3.0], "beyond": None, "none_because": None},
        "meteor": {"value": 0.3, "interval": None, "beyond": None, "none_because": None},
    }
    with coco.transaction() as connection:
        for step, status in ((4, "running"), (3, "queued"), (5, "canceled"), (6, "failed")):
            marks = {"run": "a", "epoch": str(step)}
            columns = {"status": status, "created_at": 2.0 + step, "finished_at": None}
            enter_run(connection, f"ev_a{step}", pinned, {}, marks, **columns)
        enter_task(connection, "ev_a4", "forecast", {"forecast": forecast})
    (found,) = _list(coco)
    assert [(one.step, one.value, one.status) for one in found.steps] == [
        (1, 1, "succeeded"),
        (2, 2, "succeeded"),
        (3, None, "queued"),
        (4, None, "running"),
        (6, None, "failed"),
    ]
    assert found.forecast.model_dump() == {"value": 2.6, "interval": (2.0, 3.0), "step": 4}
    assert (found.running, found.checkpoints, found.best.step) == (2, 5, 2)
    assert _list(coco, metric="meteor")[0].forecast.value == 0.3
    assert _list(coco, metric="rouge_l")[0].forecast is None


def test_the_metric_is_that_of_the_request_or_one_that_the_training_has(coco):
    _enter(coco, "a", (1, 2))
    _enter(coco, "b", (0.1, 0.2), "meteor", at=2.0)
    _enter(coco, "c", (9, 8, 7), "perplexity", at=3.0)
    assert [(one.run, one.metric) for one in _list(coco)] == [
        ("c", "cider_d"),
        ("b", "meteor"),
        ("a", "cider_d"),
    ]
    asked = {one.run: one for one in _list(coco, metric="perplexity")}
    assert asked["c"].best.step == 3
    assert asked["c"].higher_is_better is False
    assert asked["a"].best is None
    assert [one.value for one in asked["a"].steps] == [None, None]


def test_trainings_are_told_apart_by_split_and_limited_and_of_the_team(coco):
    stored_records.add_version(coco, "other", "b")
    _enter(coco, "a", (1, 2))
    _enter(coco, "b", (1, 2), at=2.0)
    with coco.transaction() as connection:
        pinned = datasets.pin_split(coco, "other/test")
        marks = {"run": "a", "step": "1"}
        scores = {"cider_d": (5.0, 0.1)}
        enter_checkpoint(connection, "ev_o", pinned, marks, scores, created_at=3.0)
        enter_checkpoint(connection, "ev_t", pinned, marks, scores, created_at=4.0, team="others")
        enter_run(connection, "ev_n", pinned, {}, {"run": "a", "step": "last"}, created_at=5.0)
        enter_run(connection, "ev_m", pinned, {}, {"step": "1"}, created_at=5.0)
    named = [(one.run, one.dataset.name) for one in _list(coco, team="local")]
    assert named == [("a", "other"), ("b", "coco"), ("a", "coco")]
    assert [one.run for one in _list(coco, "coco/test", team="local")] == ["b", "a"]
    assert [one.run for one in _list(coco, "coco", limit=1, team="local")] == ["b"]
    assert _list(coco, "coco/val") == ()
    (theirs,) = _list(coco, team="others")
    assert [one.evaluation for one in theirs.steps] == ["ev_t"]


def test_of_a_step_that_was_evaluated_twice_the_latest_score_counts(coco):
    _enter(coco, "a", (1, 2))
    pinned = datasets.pin_split(coco, "coco/test")
    marks = {"run": "a", "step": "2"}
    with coco.transaction() as connection:
        scores = {"cider_d": (2.2, 0.1)}
        enter_checkpoint(connection, "ev_later", pinned, marks, scores, created_at=2.0)
        running = {"status": "running", "created_at": 3.0}
        enter_run(connection, "ev_running", pinned, {}, marks, **running)
        other = {"run": "a", "step": "7"}
        scores = {"cider_d": (9.0, 0.1)}
        enter_checkpoint(connection, "ev_y", pinned, other, scores, "y|v:1", created_at=0.5)
    (found,) = _list(coco)
    assert [(one.evaluation, one.value) for one in found.steps] == [
        ("ev_a1", 1),
        ("ev_later", 2.2),
        ("ev_y", None),  # of another signature than the latest
    ]
    assert (found.checkpoints, found.running) == (3, 1)


def test_long_trainings_are_thinned_evenly():
    fallen, best = {3, 500, 777}, 603
    steps = [
        TrainingStep(
            step=at,
            evaluation=f"ev_{at}",
            value=float(at == best),
            interval=None,
            status="succeeded",
            is_fallen=at in fallen,
            fall=None,
        )
        for at in range(1000)
    ]
    chosen = thin_steps(steps, BestStep(step=best, evaluation="ev_603", value=1.0))
    kept = [one.step for one in chosen]
    assert len(kept) == MOST_STEPS
    assert kept == sorted(set(kept))
    assert {0, 999, best, *fallen} <= set(kept)
    assert max(b - a for a, b in itertools.pairwise(kept)) <= 6
    assert thin_steps(steps[:MOST_STEPS], None) == steps[:MOST_STEPS]
    assert (
        len(thin_steps([one.model_copy(update={"is_fallen": True}) for one in steps], None))
        == MOST_STEPS
    )
