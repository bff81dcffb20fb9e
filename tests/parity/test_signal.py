"""The page of real trainings. Oracle: the definitions of `deploy/guide/signal.md` in plain Python,
from the raw scores that the command leaves; of paired tests, Student's t of images' scores.
"""

import json
import math
import re
import statistics
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from parity import signal_choices, signal_page, signal_trainings
from parity.signal_choices import TrainingScores
from prescore import Client
from prescore.models.signals import PERCENTS

PAGE = Path(__file__).with_name("SIGNAL.md")


def _read_tables(text):
    """Rows of tables by heading."""
    tables, heading = {}, None
    for line in text.splitlines():
        if not line.startswith("| "):
            heading = None
            continue
        row = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if heading is None:
            heading = row
        elif set(line) - set("|- "):
            tables.setdefault(heading, []).append(row)
    return tables


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What the command prints and leaves of a small set."""
    out = tmp_path_factory.mktemp("signal")
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("builtins.print", lambda *lines: printed.extend(map(str, lines)))
        signal_page.main(["--out", str(out), "--set", "few"])
    curves = {}
    for row in json.loads((out / "few.json").read_text("utf-8")):
        _, scores = curves.setdefault(row["run"], (row["recipe"], {}))
        scores[row["step"]] = row["scores"]
    with Client(here=out) as client:
        better = {one.name: one.higher_is_better for one in client.metrics()}
        better["perplexity"] = False
        ended = [
            one for one in client.evaluations(dataset="few/test") if one.labels["step"] == "20"
        ]
        images = {
            one.labels["run"]: [each.scores["cider_d"] for each in client.captions(one.id)]
            for one in ended
        }
    return _read_tables("\n".join(printed)), curves, better, images


def _oracle_signal(curves, metric, average=1):
    """signal, noise, snr, seed noise, and whether they are shares."""
    values = {
        run: [scores[step][metric] for step in sorted(scores)]
        for run, (_, scores) in curves.items()
    }
    relative = min(map(min, values.values())) > 0

    def spread(group):
        return statistics.stdev(group) / (statistics.mean(group) if relative else 1)

    finals = {run: statistics.mean(each[-average:]) for run, each in values.items()}
    unit = statistics.mean(finals.values()) if relative else 1
    signal = (max(finals.values()) - min(finals.values())) / unit
    noise = statistics.mean(spread(each[-5:]) for each in values.values())
    recipes = {recipe for recipe, _ in curves.values()}
    seeds = statistics.mean(
        spread([finals[run] for run in curves if curves[run][0] == recipe]) for recipe in recipes
    )
    return signal, noise, signal / noise, seeds, relative


def _find_pairs_apart(images, many):
    """The `many` pairs of which Student's t is the largest; by itself it tells the same pairs
    apart, but for the error of resampled standard errors.
    """
    found = {
        pair: abs(stats.ttest_rel(*(images[run] for run in pair)).statistic)
        for pair in combinations(images, 2)
    }
    order = sorted(found, key=lambda pair: -found[pair])
    assert all(found[pair] > 0.85 * 1.97 for pair in order[:many])
    assert all(found[pair] < 1.15 * 1.97 for pair in order[many:])
    return order[:many]


def _oracle_accuracy(curves, pairs, metric, percent, *, higher):
    last = max(max(scores) for _, scores in curves.values())
    step = percent * last / 100
    right = 0
    for pair in pairs:
        x, y = (curves[run][1][step][metric] for run in pair)
        a, b = (curves[run][1][last]["cider_d"] for run in pair)
        right += x != y and ((x < y) == (a < b)) == higher
    return right / len(pairs)


@pytest.mark.slow
def test_the_command_prints_what_the_definitions_say(measured):
    tables, curves, better, images = measured
    sets = tables[signal_page.SETS]
    assert [row[:6] for row in sets] == [
        ("few", "64", "3", "6", target, average)
        for target in ("cider_d", "rouge_l")
        for average in ("1", "3")
    ]
    pairs = _find_pairs_apart(images, int(sets[0][6]))
    assert len(pairs) + int(sets[0][7]) == 15
    rows = tables[signal_page.METRICS]
    assert len(rows) == 3 + signal_page.BEST + 7
    for row in rows:
        metric = row[1]
        *spreads, seeds, relative = _oracle_signal(curves, metric)
        signal, noise, ratio = spreads
        form = (
            (lambda value: f"{100 * value:.3g} %") if relative else (lambda value: f"{value:.3g}")
        )
        assert row[2:6] == (form(signal), form(noise), f"{ratio:.1f}", form(seeds)), metric
        expected = [
            f"{_oracle_accuracy(curves, pairs, metric, percent, higher=better[metric]):.2f}"
            for percent in PERCENTS
        ]
        assert [cell.split(" ")[0] for cell in row[-len(PERCENTS) :]] == expected, metric


@pytest.mark.slow
def test_the_best_of_these_pairs_and_metrics_chosen_beforehand_are_told(measured):
    tables, curves, better, images = measured
    pairs = _find_pairs_apart(images, int(tables[signal_page.SETS][0][6]))
    own = [row for row in tables[signal_page.CHOICES] if row[1] == "cider_d"]
    rows = {row[2]: row[3:] for row in own}
    assert rows.keys() - set(signal_page.HEADLINE) == {
        *("best pre-gen of these pairs", "chosen on half of the recipes", "cider_d"),
    }
    shared = set.intersection(*(set(one) for _, each in curves.values() for one in each.values()))
    names = [name for name in shared if "_" in name and better[name] is not None]
    pregen = [name for name in names if re.fullmatch(r"(\w+)_(\w+)_(\w+)_(\w+)", name)]
    for at, percent in enumerate(PERCENTS):
        accuracies = [
            _oracle_accuracy(curves, pairs, name, percent, higher=better[name]) for name in pregen
        ]
        assert rows["best pre-gen of these pairs"][at] == f"{max(accuracies):.2f}"
        accuracy = _oracle_accuracy(curves, pairs, "cider_d", percent, higher=True)
        assert rows["cider_d"][at] == f"{accuracy:.2f}"


@pytest.mark.slow
def test_pairs_of_one_architecture_and_of_two_are_told_apart(measured):
    tables, curves, better, images = measured
    pairs = _find_pairs_apart(images, int(tables[signal_page.SETS][0][6]))
    for _, label, many, metric, *told in tables[signal_page.ALIKE]:
        kept = [
            pair
            for pair in pairs
            if (len({curves[run][0].split()[0] for run in pair}) == 1) == (label == "one")
        ]
        assert int(many) == len(kept)
        if metric in curves[pairs[0][0]][1][1]:
            assert told == [
                f"{_oracle_accuracy(curves, kept, metric, percent, higher=better[metric]):.2f}"
                for percent in PERCENTS
            ]


def test_the_page_has_the_tables_that_the_command_prints():
    tables = _read_tables(PAGE.read_text("utf-8"))
    sets = ("shapes", "flickr8k")
    assert {row[0] for row in tables[signal_page.SETS]} == set(sets)
    trials = signal_trainings.SHAPES, signal_trainings.flickr8k_set(Path("/nowhere"))
    for tried in trials:
        own = {
            heading: [row for row in tables[heading] if row[0] == tried.name]
            for heading in (
                *(signal_page.SETS, signal_page.METRICS),
                *(signal_page.AVERAGED, signal_page.ALIKE, signal_page.CHOICES),
            )
        }
        postgen = 6 + ("meteor" in tried.postgen)
        many = [4, 3 + signal_page.BEST + postgen, 6, 10, 7 + 5]
        assert [len(rows) for rows in own.values()] == many
        facts = (str(tried.tested), str(len(tried.recipes)), str(tried.trainings))
        pairs = math.comb(tried.trainings, 2)
        for row in own[signal_page.SETS]:
            assert row[1:4] == facts
            assert int(row[6]) + int(row[7]) == pairs
        assert [row[1] for row in own[signal_page.METRICS]][:3] == list(signal_page.HEADLINE)


def _made_up(metrics=400, recipes=6, seeds=3, seed=4):
    """Metrics that know nothing of the end."""
    rng = np.random.default_rng(seed)
    many = recipes * seeds
    order = np.sign(np.subtract.outer(final := rng.permutation(many), final)).T
    return TrainingScores(
        [f"m{at}" for at in range(metrics)],
        [f"r{at // seeds}" for at in range(many)],
        np.array([5, 25, 100]),
        rng.normal(size=(metrics, many, 3)),
        order,
    )


def test_a_choice_of_metrics_that_know_nothing_is_no_better_than_a_coin():
    found = [_made_up(seed=seed) for seed in range(8)]
    best = [one.measure(25).max() for one in found]
    judged = [signal_choices.judge_choices(one, 25) for one in found]
    transferred = [
        signal_choices.judge_transfer(one, other, 25) for one, other in combinations(found, 2)
    ]
    assert min(best) > 0.65
    assert abs(np.mean(judged) - 0.5) < 0.05
    assert abs(np.mean(transferred) - 0.5) < 0.05


def test_a_metric_that_knows_the_end_is_chosen():
    found = _made_up()
    found.scores[7, :, 1] = -np.argsort(np.argsort(found.order.sum(1)))
    assert found.measure(25)[7] == 1
    assert signal_choices.judge_choices(found, 25) == 1
    assert signal_choices.judge_transfer(found, found, 25) == 1


def test_equal_early_scores_are_wrong():
    found = _made_up(metrics=1)
    found.scores[:] = 1.0
    assert found.measure(25) == [0]


def test_finals_are_ordered_as_students_t_says():
    rng = np.random.default_rng(0)
    images = [at * 0.05 + rng.normal(size=300) for at in range(6)]
    order = signal_choices.order_finals(images)
    for one, other in combinations(range(6), 2):
        found = stats.ttest_rel(images[other], images[one])
        expected = np.sign(found.statistic) * (abs(found.statistic) > signal_choices.CRITICAL)
        assert order[one, other] == expected == -order[other, one]
