"""Falls as they are stored with evaluations, of rows as evaluations leave them."""

import time

import pytest
import sqlalchemy as sa

from helpers import stored_records
from helpers.statements import watched
from helpers.stored_records import enter_checkpoint, parts_on
from prescore.models.evaluations import Fall
from service.contract.api.changes import EvaluationChange
from service.engine.tables import runs
from service.retention import run_deletion
from service.runs import annotations, evaluations, training_falls
from service.stored import datasets

GOOD = (0, 0.2, 2.1, 3.2, 4.1, 4.37)
BROKEN = (0, 0.2, 2.07, 3.18, 3.34, 4.34)
ERROR = 0.0975


@pytest.fixture
def coco(on_either):
    stored_records.add_version(on_either, "coco", "a")
    return on_either


def _enter(records, run, values, metric="cider_d", error=ERROR, split="coco/test", **labels):
    """Evaluations `run`1, `run`2, ... of a training."""
    pinned = datasets.pin_split(records, split)
    with records.transaction() as connection:
        for step, value in enumerate(values, start=1):
            marks = {"run": run, "step": str(step), **labels}
            at = {"created_at": float(step)}
            enter_checkpoint(
                connection, f"ev_{run}{step}", pinned, marks, {metric: (value, error)}, **at
            )


def _read(records):
    """Falls (kind, other evaluation) by evaluation."""
    rows = records.read(sa.select(runs.c.id, runs.c.falls).where(runs.c.falls.is_not(None)))
    return {row.id: [_name(one) for one in training_falls.read_falls(row.falls)] for row in rows}


def _name(fall):
    return fall.kind, fall.beside and fall.beside.evaluation


def _versions(records):
    return dict(records.read(sa.select(runs.c.id, runs.c.version)))


def test_a_fall_is_stored_once_its_checkpoint_ends_and_in_hindsight(coco):
    _enter(coco, "a", GOOD)
    _enter(coco, "b", BROKEN[:5])
    assert _read(coco) == {"ev_b5": [("run", "ev_a5")]}
    before = _versions(coco)
    _enter(coco, "c", ())
    with coco.transaction() as connection:
        pinned = datasets.pin_split(coco, "coco/test")
        marks = {"run": "b", "epoch": "6"}
        enter_checkpoint(connection, "ev_b6", pinned, marks, {"cider_d": (4.34, ERROR)})
    assert _read(coco) == {"ev_b5": [("trend", None), ("run", "ev_a5")]}
    after = _versions(coco)
    assert {name for name in before if after[name] != before[name]} == {"ev_b5"}
    assert after["ev_b6"] == 1


def test_a_fall_says_its_numbers_and_a_sentence(coco):
    _enter(coco, "a", GOOD, recipe="x")
    _enter(coco, "b", BROKEN)
    with coco.reading() as connection:
        stored = connection.execute(sa.select(runs.c.falls).where(runs.c.id == "ev_b5")).scalar()
    trend, fall = training_falls.read_falls(stored)
    reach = 1.96 * ERROR * 2**0.5
    assert fall.model_dump() == {
        "metric": "cider_d",
        "kind": "run",
        "step": 5,
        "value": 3.34,
        "expected": pytest.approx(4.08),
        "difference": pytest.approx(-0.76),
        "interval": (
            pytest.approx(-0.76 - reach, abs=1e-4),
            pytest.approx(-0.76 + reach, abs=1e-4),
        ),
        "beside": {
            "evaluation": "ev_a5",
            "labels": {"run": "a", "step": "5", "recipe": "x"},
        },
    }
    assert fall.sentence() == "cider_d 3.34 at step 5 is 0.76 [0.49, 1.03] below a at the same step"
    assert trend.sentence() == (
        "cider_d 3.34 at step 5 is 0.42 [0.186, 0.654] below the line between the steps beside it"
    )


def test_a_metric_that_is_better_low_falls_upwards(coco):
    low = next(
        one
        for one in training_falls.catalogue.POSTGEN.values()
        if one.sign == -1 and one.family == "postgen"
    ).name
    _enter(coco, "a", [5 - one for one in GOOD], low)
    _enter(coco, "b", [5 - one for one in BROKEN], low)
    with coco.reading() as connection:
        stored = connection.execute(sa.select(runs.c.falls).where(runs.c.id == "ev_b5")).scalar()
    _, fall = training_falls.read_falls(stored)
    assert (fall.value, fall.difference) == (pytest.approx(1.66), pytest.approx(0.76))
    assert fall.interval[0] < 0.76 < fall.interval[1]
    assert " above a at the same step" in fall.sentence()


def test_trainings_of_a_sweep_are_compared_among_themselves(coco):
    _enter(coco, "a", GOOD, sweep="1")
    _enter(coco, "b", BROKEN, sweep="2")
    assert _read(coco) == {"ev_b5": [("trend", None)]}
    _enter(coco, "c", GOOD, sweep="2")
    assert _read(coco) == {"ev_b5": [("trend", None), ("run", "ev_c5")]}
    _enter(coco, "d", BROKEN)  # without a sweep: with all
    assert _read(coco)["ev_d5"][1][0] == "run"


def test_trainings_without_a_sweep_change_no_falls_of_a_sweep(coco):
    _enter(coco, "b", BROKEN, sweep="2")
    _enter(coco, "d", GOOD)
    assert _read(coco) == {"ev_b5": [("trend", None)]}


def test_other_splits_teams_metrics_and_signatures_are_not_compared(coco):
    stored_records.add_version(coco, "coco", "b")
    _enter(coco, "a", GOOD, split="coco@v1/test")
    _enter(coco, "b", BROKEN[:5], split="coco@v2/test")
    _enter(coco, "c", BROKEN[:5], "meteor", split="coco@v1/test")
    pinned = datasets.pin_split(coco, "coco@v1/test")
    with coco.transaction() as connection:
        for step, value in enumerate(BROKEN[:5], start=1):
            scores, marks = {"cider_d": (value, ERROR)}, {"run": "d", "step": str(step)}
            other = {"team": "others", "created_at": float(step)}
            enter_checkpoint(connection, f"ev_d{step}", pinned, marks, scores, **other)
            enter_checkpoint(
                connection, f"ev_e{step}", pinned, {**marks, "run": "e"}, scores, "y|v:1"
            )
    assert _read(coco) == {}
    _enter(coco, "f", BROKEN[:5], split="coco@v1/test")
    assert set(_read(coco)) == {"ev_f5"}


def test_only_checkpoints_with_a_step_and_post_gen_scores_fall(coco):
    _enter(coco, "a", [40 - one for one in GOOD], "perplexity")
    _enter(coco, "b", [40 - one for one in (*BROKEN, 0)], "perplexity")
    pinned = datasets.pin_split(coco, "coco/test")
    with coco.transaction() as connection:
        for number, value in enumerate((1, 2, 3, 0)):
            scores = {"cider_d": (value, 0.01)}
            for marks in ({"run": "c"}, {"step": str(number)}, {"run": "c", "step": "last"}, {}):
                name = f"ev_{number}{len(marks)}{'step' in marks}"
                enter_checkpoint(connection, name, pinned, marks, scores)
    assert _read(coco) == {}


def test_deleting_or_renaming_the_other_training_takes_the_fall_away(coco):
    _enter(coco, "a", GOOD)
    _enter(coco, "b", BROKEN)
    assert ("run", "ev_a5") in _read(coco)["ev_b5"]
    parts = parts_on(coco)
    before = _versions(coco)
    change = EvaluationChange(labels={"step": "50"})
    annotations.change_run(parts, evaluations.KIND, "ev_a5", change, lambda _: True)
    assert _read(coco) == {"ev_b5": [("trend", None)]}
    assert _versions(coco)["ev_b5"] == before["ev_b5"] + 1
    change = EvaluationChange(labels={"step": "5"})
    annotations.change_run(parts, evaluations.KIND, "ev_a5", change, lambda _: True)
    assert _read(coco) == {"ev_b5": [("trend", None), ("run", "ev_a5")]}
    with coco.transaction() as connection:
        run_deletion.remove_run(connection, "ev_a4")
    assert _read(coco) == {"ev_b5": [("trend", None)]}


def test_a_fall_goes_with_the_labels_of_its_checkpoint(coco):
    _enter(coco, "a", (1, 2, 3, 2))
    assert _read(coco) == {"ev_a4": [("step", None)]}
    change = EvaluationChange(labels={"run": None})
    annotations.change_run(parts_on(coco), evaluations.KIND, "ev_a4", change, lambda _: True)
    assert _read(coco) == {}


def test_evaluations_without_these_labels_cost_one_statement(records):
    stored_records.add_version(records, "coco", "a")
    _enter(records, "a", GOOD)
    pinned = datasets.pin_split(records, "coco/test")
    with records.transaction() as connection:
        stored_records.enter_run(connection, "ev_x", pinned, {}, {"branch": "main"})
        with watched(records.engine) as statements:
            training_falls.settle_groups(connection, "ev_x")
    assert len(statements) == 1


def test_long_trainings_take_little_time(records):
    """Eleven trainings of 90 checkpoints with six metrics: the most that is looked at."""
    stored_records.add_version(records, "coco", "a")
    pinned = datasets.pin_split(records, "coco/test")
    metrics = ("cider_d", "meteor", "bleu_4", "bleu_1", "rouge_l", "bleu_2")
    with records.transaction() as connection:
        for run in range(11):
            for step in range(90):
                name, marks = f"ev_{run}_{step}", {"run": f"r{run}", "step": str(step)}
                stored_records.enter_run(connection, name, pinned, {}, marks)
                value = 1 - 1 / (1 + step)
                scores = dict.fromkeys(metrics, (value, value - 0.01, value + 0.01))
                stored_records.enter_scores(connection, name, scores, "x|v:1")
        with watched(records.engine) as statements:
            begun = time.process_time()
            training_falls.settle_groups(connection, "ev_0_89")
            taken = time.process_time() - begun
    print(f"{taken:.3f} s, {len(statements)} statements")
    assert len(statements) <= 5
    assert taken < 5


def test_sentences_of_other_kinds():
    fall = Fall(metric="x", kind="step", step=2.5, value=1, expected=2, difference=-1)
    assert fall.sentence() == "x 1 at step 2.5 is 1 below the step before"
    later = Fall(metric="x", kind="newer", step=2, value=1, expected=2, difference=-1)
    assert later.sentence() == "x 1 at step 2 is 1 below what was expected"
