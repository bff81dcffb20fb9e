"""Rankings of sweeps, from rows as evaluations leave them. Oracle: least squares of numpy and
Student's t of scipy, training by training.
"""

import random
import time
import uuid

import pytest

from helpers import stored_records
from helpers.stored_records import enter_run, enter_scores, parts_on
from prescore.models.sweeps import SWEEP_COLUMNS
from service.contract.errors import InvalidRequest
from service.runs import sweep_rankings
from service.runs.sweep_scores import RankingQuery
from service.stored import datasets

SWEEP = {"sweep": "7"}
STEPS = (100, 200, 1000)


@pytest.fixture(autouse=True)
def _coco(records):
    stored_records.add_version(records, "coco", "a")


def _rank(records, labels=SWEEP, **asked):
    asked = RankingQuery("coco", None, asked.pop("target", "cider_d"), labels, **asked)
    return sweep_rankings.rank_sweep(parts_on(records), asked)


def _enter(records, run, scores, labels=None, signature="x|v:1", at=1.0):
    """A training: {step: {metric: score}}."""
    pinned = datasets.pin_split(records, "coco/test")
    with records.transaction() as connection:
        for step, values in scores.items():
            marks = {"run": run, "step": str(step), **(labels or {})}
            identity = f"ev_{uuid.uuid4().hex}"
            enter_run(connection, identity, pinned, {}, marks, created_at=at + step / 1e6)
            whole = {name: (value, value - 1e-4, value + 1e-4) for name, value in values.items()}
            enter_scores(connection, identity, whole, signature)


def _curve(quality, rng, steps=STEPS, noise=0.002):
    """Scores by step: perplexity foretells the final CIDEr-D well, METEOR does not."""
    return {
        step: {
            "cider_d": quality - (0.3 if step < 1000 else 0) + noise * rng.gauss(),
            "perplexity": 20 - 10 * quality + 5 * noise * rng.gauss(),
            "meteor": 0.3 + 0.05 * rng.gauss(),
        }
        for step in steps
    }


def _enter_past(records, many=10, seed=1, **options):
    rng = random.Random(seed)
    for number in range(many):
        _enter(records, f"p{number}", _curve(0.25 + 0.05 * number, rng), **options)


def _enter_sweep(records, qualities, reached=(100,), signature="x|v:1", **labels):
    rng = random.Random(2)
    for number, quality in enumerate(qualities):
        scores = _curve(quality, rng, reached)
        _enter(records, f"s{number}", scores, SWEEP | labels, signature, at=2.0)


def test_runs_far_behind_can_be_stopped_and_the_best_is_kept(on_either):
    records = on_either
    stored_records.add_version(records, "coco", "a")
    _enter_past(records)
    _enter_sweep(records, (0.3, 0.6, 0.35, 0.59, 0.4))
    found = _rank(records)
    assert found.not_yet is None
    assert (found.percent, found.usual_end, found.past, found.groups) == (10, 1000, 10, 10)
    assert set(found.stopped) == {"s0", "s2"}  # half of the five at most, though s4 is behind too
    assert found.probability >= 0.95
    assert [run.run for run in found.runs][:2] == ["s1", "s3"]
    assert sum(run.best for run in found.runs) == pytest.approx(1)
    assert found.sentence().startswith(
        "2 of 5 runs can be stopped at 10 %: the best is among the other 3 with "
    )
    expected = {run.run: run.expected for run in found.runs}
    assert expected["s1"] == pytest.approx(0.6, abs=0.03)
    for run in found.runs:
        assert run.interval[0] < run.expected < run.interval[1]
        assert (run.step, run.percent, run.final) == (100, 10, None)


def test_known_finals_of_the_sweep_compete_and_are_never_stopped(records):
    _enter_past(records)
    _enter_sweep(records, (0.3, 0.6, 0.35, 0.4))
    _enter(records, "s9", {100: {"perplexity": 15}, 1000: {"cider_d": 0.75}}, SWEEP)
    found = _rank(records, percent=10)
    runs = {run.run: run for run in found.runs}
    assert (runs["s9"].final, runs["s9"].advice, runs["s9"].expected) == (0.75, "ended", None)
    assert runs["s9"].best > 0.99
    assert set(found.stopped) == {"s0", "s2"}
    assert found.runs[0].run == "s9"
    _enter(records, "s1", {1000: {"cider_d": 0.8}}, SWEEP, at=3)
    _enter(records, "s3", {1000: {"cider_d": 0.7}}, SWEEP, at=3)
    runs = {run.run: run.best for run in _rank(records, percent=10).runs}
    assert runs["s1"] > 0.99
    assert runs["s9"] == 0


def test_a_run_that_began_like_no_past_one_is_kept(records):
    _enter_past(records)
    _enter_sweep(records, (0.0, 0.6, 0.3, 0.59, 0.35))
    found = _rank(records)
    runs = {run.run: run for run in found.runs}
    assert (runs["s0"].is_covered, runs["s0"].advice) == (False, "keep")
    assert runs["s0"].expected > 0.1
    assert set(found.stopped) == {"s2", "s4"}
    _enter(records, "s1", {100: {"meteor": 9.0}}, SWEEP, at=9)
    for run in range(5):
        _enter(records, f"s{run}", {110: {"perplexity": 90.0}}, SWEEP, at=9)
    said = _rank(records, percent=11).not_yet
    assert said == "no past training had an early perplexity such as 90"


def test_a_target_that_is_better_low_is_ranked_the_other_way(records):
    _enter_past(records)
    _enter_sweep(records, (0.3, 0.6, 0.35, 0.59))
    low = _rank(records, target="perplexity")
    assert set(low.stopped) == set(_rank(records).stopped) == {"s0", "s2"}
    best = low.runs[0]
    assert best.expected == pytest.approx(14, abs=0.3)
    assert best.interval[0] < best.expected < best.interval[1]


@pytest.mark.parametrize(
    ("labels", "steps", "percent"),
    [({}, None, 10), ({"steps": "2000"}, None, 5), ({"steps": "2000"}, 400, 25)],
)
def test_the_end_of_a_run_is_given_or_labelled_or_that_of_past_trainings(
    records, labels, steps, percent
):
    _enter_past(records, 8)
    _enter(records, "longer", _curve(0.5, random.Random(1), (100, 200, 3000)))
    _enter_sweep(records, (0.3, 0.6), **labels)
    found = _rank(records, steps=steps)
    assert (found.percent, found.runs[0].percent) == (percent, percent)
    assert found.usual_end == (None if labels else 1000)


def test_past_trainings_are_those_that_have_ended(records):
    _enter_past(records, 9)
    _enter_past(records, 1, seed=8, labels={"stopped": "yes"}, at=3.0)  # p0 again
    short = _curve(0.5, random.Random(1), (100,))
    _enter(records, "young", short, {"steps": "1000"})
    _enter(records, "old", _curve(0.5, random.Random(1)), {"steps": "1000"})
    _enter(records, "other", {100: {"perplexity": 9}, 1000: {"perplexity": 9}})
    _enter_sweep(records, (0.3, 0.6, 0.35))
    _enter(records, "s3", short, SWEEP | {"stopped": "yes"})
    found = _rank(records)
    assert found.past == 9
    assert found.left_out == {
        "label stopped": 1,
        "label stopped, of the sweep": 1,
        "a last step before label steps": 1,
    }
    assert {run.run for run in found.runs} == {"s0", "s1", "s2"}


def test_the_signature_is_that_of_the_sweep(records):
    _enter_past(records, 20, labels={"recipe": "old"}, signature="x|v:1")
    _enter_sweep(records, (0.3, 0.6, 0.35), signature="x|v:2")
    assert "found 0 of 0" in _rank(records).not_yet
    rng = random.Random(5)
    for number in range(9):
        scores = _curve(0.5 + 0.1 * rng.gauss(), rng)
        _enter(records, f"new{number}", scores, signature="x|v:2")
    found = _rank(records)
    assert (found.past, found.groups, found.not_yet) == (9, 9, None)


def test_metrics_that_not_all_trainings_have_are_left_aside(records):
    _enter_past(records, 9)
    _enter_sweep(records, (0.3, 0.6, 0.35))
    _enter(records, "s3", {100: {"meteor": 0.3, "cider_d": 0.1}}, SWEEP)
    assert _rank(records).metric == "cider_d"
    _enter(records, "p9", {100: {"meteor": 0.3}, 1000: {"cider_d": 0.5}})
    found = _rank(records)
    assert (found.metric, found.past) == ("meteor", 10)
    assert found.not_yet.startswith("at 10 % meteor orders 45 pairs of past trainings with ")
    assert found.not_yet.endswith("; expected an interval above 0.50")
    assert {run.advice for run in found.runs} == {None}
    assert found.probability is None


def _say(records, **asked):
    found = _rank(records, **asked)
    assert found.stopped == ()
    assert {run.advice for run in found.runs} <= {None}
    assert found.sentence() == f"not yet: {found.not_yet}"
    return found.not_yet


def test_what_is_lacking_is_said_in_numbers(records):
    expected = "expected two runs or more with the labels sweep=7, run and step on coco@v1/test"
    assert _say(records) == f"{expected}, found 0"
    _enter_sweep(records, (0.5,))
    assert _say(records) == f"{expected}, found 1"
    _enter_sweep(records, (0.5, 0.5, 0.5), steps="1000")
    _enter_past(records, 7)
    lacking = (
        "expected 8 past trainings of 3 recipes or more on coco@v1/test, with a final cider_d and, "
        "up to 10 % of their steps, cider_d, perplexity, meteor; found 7 of 7"
    )
    assert _say(records) == lacking
    _enter_past(records, 10, seed=2, labels={"recipe": "a"}, at=3.0)
    _enter(records, "q", _curve(0.5, random.Random(1)), {"recipe": "b"})
    assert _say(records).endswith("found 11 of 2")
    _enter_past(records, 10, seed=3, at=4.0)
    assert _say(records).startswith("without s")
    _enter(records, "s1", _curve(0.5, random.Random(1), (200, 300)), SWEEP | {"steps": "1000"})
    behind = (
        "expected all runs at 30 % of their steps, found s0 at 10 % (2 of 3 runs are not there); "
        "one that does not go on needs the label stopped"
    )
    assert _say(records, percent=30) == behind
    _enter(records, "s3", {100: {"spice": 0.2}, 200: {"rouge_l": 0.1}}, SWEEP)
    unscored = "expected early scores of one metric in all runs, up to 10 % of their steps, found "
    assert _say(records, percent=10) == f"{unscored}none in s3"


def test_a_sweep_that_has_ended_needs_no_ranking(records):
    _enter_past(records)
    _enter_sweep(records, (0.4, 0.65), reached=STEPS)
    told = _say(records)
    assert told.startswith("all runs have ended; s1 has the best cider_d, 0.6")
    _enter(records, "s2", {1000: {"meteor": 0.3}}, SWEEP)
    assert _say(records) == "expected a final cider_d of s2, which has ended, found none"


def test_a_ranking_needs_labels_and_a_target_with_a_direction(records):
    with pytest.raises(InvalidRequest, match="expected labels") as refused:
        _rank(records, {})
    assert refused.value.problems[0][0] == "/query/labels"
    with pytest.raises(InvalidRequest, match="neither better high nor low"):
        _rank(records, target="mean_mean_count_none")


def test_the_table_has_a_row_for_each_run(records):
    _enter_past(records)
    _enter_sweep(records, (0.3, 0.6, 0.35))
    asked = RankingQuery("coco", None, "cider_d", SWEEP)
    head, *rows = sweep_rankings.build_ranking_table(parts_on(records), asked)
    assert head == SWEEP_COLUMNS
    assert {len(row) for row in rows} == {len(head)}
    assert [row[-1] for row in rows] == ["keep", "keep", "stop"]


@pytest.mark.long
def test_200_evaluations_take_under_two_seconds(records):
    rng = random.Random(1)
    names = ("bleu_4", "rouge_l", "bits_per_byte", "corpus_perplexity", "spice")
    for run in range(20):
        curve = _curve(0.5 + 0.1 * rng.gauss(), rng, range(100, 1100 if run < 12 else 600, 100))
        scores = {step: one | dict.fromkeys(names, rng.random()) for step, one in curve.items()}
        _enter(records, f"r{run}", scores, SWEEP if run >= 12 else None)
    begun = time.process_time()
    assert len(_rank(records).runs) == 8
    assert time.process_time() - begun < 2
