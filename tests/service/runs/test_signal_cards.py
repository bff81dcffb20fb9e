"""Cards of splits, from rows as evaluations leave them. Oracle: the definitions in plain Python,
pair by pair; of paired tests, Student's t of the images' scores of which the draws were made.
"""

import math
import random
import statistics
import time
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import stats

from helpers import stored_records
from helpers.stored_records import enter_pregen, enter_run, enter_scores, parts_on
from prescore.models.signals import SIGNAL_COLUMNS
from service.contract.errors import InvalidRequest
from service.contract.metrics import catalogue
from service.contract.metrics.draws import DRAWS
from service.runs import signal_cards
from service.runs.signal_cards import SignalQuery
from service.runs.signal_noise import FinalOrder, find_bound
from service.stored import datasets

SHARES = {5: 0.05, 10: 0.1, 25: 0.25, 50: 0.5}
PREGEN = "mean_mean_prob_none"
LOW = "mean_mean_pplx_none"
LOWER = {LOW, "wmd_distance"}  # is better
NEITHER = "mean_mean_count_none"
ERROR = 0.004


@pytest.fixture(autouse=True)
def _coco(records):
    stored_records.add_version(records, "coco", "a")


def _card(records, target="cider_d", **asked):
    asked = SignalQuery("coco", None, target, **asked)
    return signal_cards.build_signal_card(parts_on(records), asked)


def _enter(records, identity, marks, scores, pregen=None, at=1.0, draws=None, **facts):
    """An evaluation with scores, value or (value, low, high), by metric."""
    signature, request = facts.pop("signature", "x|v:1"), {"subset": facts.pop("subset", False)}
    pinned = datasets.pin_split(records, "coco/test")
    whole = {n: s if isinstance(s, tuple) else (s, None, None) for n, s in scores.items()}
    with records.transaction() as connection:
        enter_run(connection, identity, pinned, request, marks, created_at=at, **facts)
        enter_scores(connection, identity, whole, signature, draws)
        if pregen is not None:
            enter_pregen(connection, identity, pregen, signature)


def _trainings(count=7, steps=20, seed=3):
    """{run: (recipe, seed, {step: {metric: score}})}, of which the later a step, the truer."""
    rng = random.Random(seed)
    found = {}
    for number in range(count):
        quality, scores = 0.5 + 0.015 * rng.gauss(0, 1), {}
        for step in range(1, steps - number % 2 + 1):
            grown = quality * (1 - 0.7 / step) + 0.01 * rng.gauss(0, 1)
            scores[step] = {
                "cider_d": grown,
                "wmd_distance": 2 - grown + 0.02 * rng.gauss(0, 1),
                PREGEN: grown - 0.45,  # below 0 for some
                LOW: 9 - 5 * grown + 0.05 * rng.gauss(0, 1),
                NEITHER: 11 + rng.gauss(0, 1),
            }
        found[f"r{number}"] = f"recipe {number // 3}", str(number % 3), scores
    return found


def _enter_trainings(records, trainings):
    order = [(run, step) for run, one in trainings.items() for step in one[2]]
    random.Random(5).shuffle(order)
    for at, (run, step) in enumerate(order):
        recipe, seed, scores = trainings[run]
        marks = {"run": run, "step": str(step), "recipe": recipe, "seed": seed}
        pregen = {name: scores[step][name] for name in (PREGEN, LOW, NEITHER)}
        shown = ("cider_d", "wmd_distance")
        reach = 1.959964 * ERROR
        sure = {
            n: (scores[step][n], scores[step][n] - reach, scores[step][n] + reach) for n in shown
        }
        _enter(records, f"ev_{at}", marks, sure, pregen, at=at)


def _oracle_signal(trainings, metric, last, average):
    curves = [[s[metric] for _, s in sorted(one[2].items())] for one in trainings.values()]
    finals = [statistics.mean(curve[-average:]) for curve in curves]
    relative = all(value > 0 for curve in curves for value in curve)

    def spread(values):
        return statistics.stdev(values) / (statistics.mean(values) if relative else 1)

    recipes = {}
    for (recipe, _, _), final in zip(trainings.values(), finals, strict=True):
        recipes.setdefault(recipe, []).append(final)
    signal = max(abs(a - b) for a, b in combinations(finals, 2))
    signal /= statistics.mean(finals) if relative else 1
    noise = statistics.mean(spread(curve[-last:]) for curve in curves if len(curve) >= last)
    seeds = statistics.mean(spread(each) for each in recipes.values() if len(each) > 1)
    return relative, signal, noise, seeds


def _oracle_decisions(trainings, metric, target, share, average):
    """Right and counted pairs by the two trainings, and pairs that are too close."""

    def score(run, name, upto):
        steps = trainings[run][2]
        kept = [steps[at][name] for at in sorted(steps) if at <= upto * max(steps) + 1e-9]
        return statistics.mean(kept[-average:]) if kept else None

    right, counted, close = [], [], 0
    for pair in combinations(trainings, 2):
        a, b = (score(run, target, 1) for run in pair)
        if abs(a - b) <= 1.959964 * math.sqrt(2) * ERROR:
            close += 1
            continue
        x, y = (score(run, metric, share) for run in pair)
        if x is None or y is None:
            continue
        counted.append(pair)
        is_reversed = (metric in LOWER) != (target in LOWER)
        if ((x < y) == (a < b)) != is_reversed and x != y:
            right.append(pair)
    return right, counted, close


def _oracle_interval(right, counted, runs):
    rate = len(right) / len(counted)
    left = [
        sum(run not in pair for pair in right) / sum(run not in pair for pair in counted)
        for run in runs
    ]
    error = math.sqrt((len(left) - 1) * statistics.pvariance(left))
    bound = stats.t.ppf(0.975, len(left) - 1) * error
    return max(0, rate - bound), min(1, rate + bound)


@pytest.mark.parametrize(
    ("last", "average", "target"), [(5, 1, "cider_d"), (3, 4, "cider_d"), (5, 1, "wmd_distance")]
)
def test_signal_noise_and_decisions_are_their_definitions(records, last, average, target):
    trainings = _trainings()
    _enter_trainings(records, trainings)
    card = _card(records, target, last=last, average=average)
    found = {one.metric: one for one in card.metrics}
    assert set(found) == {"cider_d", "wmd_distance", PREGEN, LOW, NEITHER}
    assert card.trainings == {run: len(one[2]) for run, one in trainings.items()}
    for name, one in found.items():
        relative, signal, noise, seeds = _oracle_signal(trainings, name, last, average)
        assert one.relative is relative is (name != PREGEN)
        told = one.signal, one.noise, one.snr, one.seed_noise, one.seed_snr
        expected = signal, noise, signal / noise, seeds, signal / seeds
        assert told == pytest.approx(expected), name
        assert one.trainings == len(trainings)
    ratios = [one.snr for one in card.metrics]
    assert ratios == sorted(ratios, reverse=True)
    for name in ("cider_d", "wmd_distance", PREGEN, LOW):
        for one in found[name].decisions:
            asked = trainings, name, target, SHARES[one.percent], average
            right, counted, close = _oracle_decisions(*asked)
            assert one.pairs == len(counted), (name, one)
            assert card.too_close == close > 0
            assert one.accuracy == (pytest.approx(len(right) / len(counted)) if counted else None)
            if one.interval is not None:
                expected = _oracle_interval(right, counted, trainings)
                assert one.interval == pytest.approx(expected, abs=1e-3)
    assert card.pairs + card.too_close == math.comb(len(trainings), 2)
    assert found["cider_d"].decisions[0].pairs < found["cider_d"].decisions[-1].pairs
    assert any(one.interval for one in found["cider_d"].decisions)
    assert {one.accuracy for one in found[NEITHER].decisions} == {None}


def test_the_largest_noise_is_named_and_the_one_of_images_is_that_of_intervals(on_either):
    records = on_either
    stored_records.add_version(records, "coco", "a")
    for number, value in enumerate((0.4, 0.5)):
        for step in (1, 2):
            scores = {
                "cider_d": (value, value - 0.1, value + 0.1),
                "meteor": (value + step / 100, value, value + 1e-4),
            }
            marks = {"run": str(number), "step": str(step), "recipe": "a", "seed": str(number)}
            _enter(records, f"ev_{number}_{step}", marks, scores, at=step)
    found = {one.metric: one for one in _card(records, last=2).metrics}
    assert found["cider_d"].sampling_noise == pytest.approx(0.1 / 1.959964 / 0.45)
    assert (found["cider_d"].noise, found["cider_d"].snr) == (0, None)
    assert found["cider_d"].largest_noise == "seeds"
    wide = {"cider_d": (0.4, 0.0, 1.0)}
    for number in range(2):
        _enter(records, f"ev_{number}", {"run": str(number), "step": "2"}, wide, at=3)
    found = {one.metric: one for one in _card(records, last=2).metrics}
    assert (found["cider_d"].largest_noise, found["cider_d"].seed_noise) == ("sampling", None)


IMAGES = 400
WEIGHTS = np.random.default_rng(1).multinomial(IMAGES, np.full(IMAGES, 1 / IMAGES), DRAWS)


def test_pairs_are_told_apart_and_differences_detected_as_paired_tests_do(records):
    rng = np.random.default_rng(2)
    hard = rng.normal(0.6, 0.2, IMAGES)
    systems = []
    for number, gap in enumerate((0.0, 0.001, 0.02)):
        own = rng.normal(0, 0.05, IMAGES)
        images = hard + own - own.mean() + gap
        systems.append(images)
        value = float(images.mean())
        draws = {"cider_d": (WEIGHTS @ images / IMAGES).tolist()}
        scores = {"cider_d": (value, value - 0.02, value + 0.02)}  # intervals overlap
        for step in (1, 2):
            marks = {"run": str(number), "step": str(step)}
            _enter(records, f"ev_{number}_{step}", marks, scores, at=step, draws=draws)
    pairs = list(combinations(systems, 2))
    clear = [stats.ttest_rel(a, b).pvalue < 0.05 for a, b in pairs]
    card = _card(records)
    assert (card.pairs, card.too_close) == (sum(clear), 3 - sum(clear)) == (2, 1)
    (cider,) = card.metrics
    assert [one.pairs for one in cider.decisions] == [0, 0, 0, 2]
    apart = [float(stats.sem(b - a)) for a, b in pairwise(systems)]
    power = stats.norm.ppf(0.975) + stats.norm.ppf(0.95)
    expected = power * math.sqrt(np.mean(np.square(apart)))
    assert cider.detectable == pytest.approx(expected, rel=0.1)  # of 256 draws


def test_of_a_step_the_latest_score_counts_with_the_signature_of_most(records):
    for number, run in enumerate("ab"):
        for step in (1, 2):
            marks = {"run": run, "step": str(step)}
            _enter(records, f"ev_{run}{step}", marks, {"cider_d": 0.1 + number}, at=step)
    _enter(records, "ev_again", {"run": "a", "step": "2"}, {"cider_d": 0.3}, at=3)
    _enter(records, "ev_other", {"run": "a", "step": "2"}, {"cider_d": 9.0}, at=4, signature="y")
    _enter(records, "ev_part", {"run": "a", "step": "3"}, {"cider_d": 9.0}, at=4, subset=True)
    _enter(records, "ev_gone", {"run": "a", "step": "2"}, {"cider_d": 9.0}, at=5, status="canceled")
    for at, step in enumerate(("last", "-1", "nan", "inf")):
        _enter(records, f"ev_no{at}", {"run": "b", "step": step}, {"cider_d": 9.0}, at=5)
    _enter(records, "ev_plain", {}, {"cider_d": 9.0}, at=5)
    card = _card(records)
    (cider,) = card.metrics
    assert (cider.signature, cider.trainings) == ("x|v:1", 2)
    assert cider.mean == pytest.approx((0.3 + 1.1) / 2)
    assert card.left_out == {
        "no label step that is a number from 0": 4,
        "no scores of the whole split": 1,
    }
    assert card.trainings == {"a": 2, "b": 2}


def test_the_latest_labelled_evaluations_are_read(records, monkeypatch):
    monkeypatch.setattr(signal_cards, "_MOST", 2)
    for at, run in enumerate("abc"):
        _enter(records, f"ev_{run}", {"run": run, "step": "1"}, {"cider_d": 0.1}, at=at)
    _enter(records, "ev_plain", {"step": "1"}, {"cider_d": 0.1}, at=9)
    assert _card(records).trainings == {"b": 1, "c": 1}


def test_what_is_lacking_is_said(records):
    said = "no evaluation of coco/test has the labels run and step"
    _enter(records, "ev_0", {"run": "a"}, {"cider_d": 0.1})
    assert _card(records).none_because == said
    _enter(records, "ev_1", {"run": "a", "step": "1"}, {"cider_d": 0.1})
    found = _card(records)
    said = "a signal needs two training runs; of each metric, coco/test has one"
    assert found.none_because == said
    assert [(one.signal, one.noise, one.snr) for one in found.metrics] == [(None, None, None)]
    _enter(records, "ev_2", {"run": "b", "step": "1"}, {"cider_d": 0.2})
    assert _card(records).none_because is None
    with pytest.raises(InvalidRequest, match="neither better high nor low") as refused:
        _card(records, target=NEITHER)
    assert refused.value.problems[0][0] == "/query/target"


def test_the_headline_metrics_and_the_first_of_the_others_are_shown(records):
    names = [*catalogue.PREGEN][:40]
    perplexity = catalogue.ALIASES["perplexity"]
    for run in range(2):
        for step in range(2):
            pregen = {n: 1 + run + step * at / 100 for at, n in enumerate(names)}
            pregen |= {perplexity: math.inf if step == run == 0 else 9.0 + step, "bad": math.inf}
            marks = {"run": str(run), "step": str(step)}
            _enter(records, f"ev_{run}{step}", marks, {"cider_d": 0.2 + run + step / 9}, pregen)
    shown = [one.metric for one in _card(records, limit=3, last=2).metrics]
    assert set(shown) == {"cider_d", "perplexity", *names[1:4]}  # the first has no noise
    asked = SignalQuery("coco", None, "cider_d", limit=3, last=2)
    head, *rows = signal_cards.build_signal_table(parts_on(records), asked)
    assert head == SIGNAL_COLUMNS
    assert {len(row) for row in rows} == {len(head)}
    assert {row[0] for row in rows} == {"cider_d", "perplexity", *names}


def test_intervals_hold_as_often_as_they_say():
    for freedom in (1, 2, 3, 4, 5, 10, 50):
        assert find_bound(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=0.031)
    rng, held = random.Random(1), []
    for trainings in (6, 10, 20) * 100:
        finals = [rng.gauss(0, 1) for _ in range(trainings)]
        early = [final + rng.gauss(0, 1) for final in finals]  # .75 of orders are right
        found = FinalOrder.of(finals, lambda *_: True).measure_accuracy(early).interval
        held += [] if found is None else [found[0] <= 0.75 <= found[1]]
    assert 0.93 < statistics.mean(held) < 0.99


@pytest.mark.slow
def test_200_evaluations_of_700_metrics_take_under_two_seconds(records):
    rng = random.Random(1)
    shown = [*list(catalogue.POSTGEN)[:20], *catalogue.HEADLINE, "bits_per_byte"]
    for run in range(20):
        for step in range(1, 11):
            values = {n: 0.5 + run / 100 + step / 50 + rng.gauss(0, 0.01) for n in catalogue.PREGEN}
            pregen = {n: (value, value - 0.0123, value + 0.0123) for n, value in values.items()}
            scores = {name: (rng.random(), 0.0123, 0.9123) for name in shown}
            full = {catalogue.find_metric(name).name for name in shown}
            draws = {name: [rng.random() for _ in range(DRAWS)] for name in full}
            marks = {"run": str(run), "step": str(step), "seed": str(run), "recipe": str(run // 3)}
            _enter(records, f"ev_{run}_{step}", marks, scores, pregen, at=step, draws=draws)
    begun = time.process_time()
    card = _card(records, limit=1000)
    assert time.process_time() - begun < 2
    assert len(card.metrics) == len(catalogue.PREGEN) + 21
