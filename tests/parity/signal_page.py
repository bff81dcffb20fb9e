"""The tables of SIGNAL.md: cards of splits with real trainings.

    PYTHONPATH=tests:service/client:. python -m parity.signal_page --out FOLDER

Trainings, evaluations and scores stay in FOLDER: a second call trains nothing again.
`--set shapes` needs no data; `flickr8k` reads PRESCORE_DATA, or ../shared/data; `few` is a small
set, which shows in a minute that the command works.
"""

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from parity import signal_choices, signal_trainings
from parity.signal_choices import TrainingScores
from parity.signal_trainings import FEW, SHAPES, TrialSet
from prescore import Client
from prescore.models import Evaluation, MetricSignal, SignalCard
from prescore.models.signals import PERCENTS
from service.contract.metrics import catalogue

TARGET = "cider_d"
TARGETS = (TARGET, "rouge_l")
AVERAGES = (1, 3)
BEST = 8  # pre-gen metrics that are shown besides the headline ones
HEADLINE = tuple(catalogue.find_shown_name(name) for name in catalogue.HEADLINE)
SHORT = tuple(f"at {percent} %" for percent in PERCENTS)
SETS = ("set", "images", "recipes", "trainings", "target", "average", "pairs", "too close")
METRICS = (
    *("set", "metric", "signal", "noise", "SNR", "seeds", "images", "detectable"),
    *SHORT,
)
AVERAGED = ("set", "metrics", "average", "SNR", *SHORT)
ALIKE = ("set", "architectures", "pairs", "metric", *SHORT)
CHOICES = ("set", "target", "metric", *SHORT)
_BACK = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class MeasuredSet:
    """Cards of a set by target and average, and the raw scores: of pre-gen metrics, and of the
    target.
    """

    tried: TrialSet
    cards: Mapping[tuple[str, int], SignalCard]
    scores: TrainingScores
    own: TrainingScores

    @property
    def card(self) -> SignalCard:
        return self.cards[TARGET, 1]


def measure_set(client: Client, tried: TrialSet, out: Path) -> MeasuredSet:
    """Train, evaluate, and read the cards; raw scores are written to `out`."""
    evaluations = signal_trainings.evaluate_trainings(client, tried, out)
    rows = [_build_row(client, tried, one) for one in evaluations]
    (out / f"{tried.name}.json").write_text(json.dumps(rows), "utf-8")
    cards = {
        (target, average): client.signal(tried.split, target, average=average, limit=1000)
        for target in TARGETS
        for average in AVERAGES
    }
    signs = {
        metric.name: 1 if metric.higher_is_better else -1
        for metric in client.metrics()
        if metric.higher_is_better is not None and metric.name in catalogue.PREGEN
    }
    images = {
        one.labels["run"]: np.array(
            [caption.scores[TARGET] for caption in client.captions(one.id, page_size=500)]
        )
        for one in evaluations
        if one.labels["step"] == str(tried.epochs)
    }
    scores, own = (signal_choices.build_scores(rows, each, images) for each in (signs, {TARGET: 1}))
    return MeasuredSet(tried, cards, scores, own)


def _build_row(client: Client, tried: TrialSet, one: Evaluation) -> dict[str, Any]:
    scores = {**one.scores, **client.pregen(one.id)}
    return {
        "set": tried.name,
        **{name: one.labels[name] for name in ("run", "recipe", "seed")},
        "step": int(one.labels["step"]),
        "scores": {name: score.value for name, score in scores.items() if score.value is not None},
    }


def list_sets(found: MeasuredSet) -> Iterator[Sequence[str]]:
    tried = found.tried
    for (target, average), card in found.cards.items():
        counts = len(tried.recipes), len(card.trainings)
        head = (tried.name, tried.tested, *counts, target, average, card.pairs, card.too_close)
        yield [str(cell) for cell in head]


def list_metrics(found: MeasuredSet) -> Iterator[Sequence[str]]:
    """Headline metrics, the best pre-gen metrics at 25 % of the steps, post-gen metrics."""
    for one in select_metrics(found):
        form = _format_share if one.relative else _format_number
        yield (
            *(found.tried.name, one.metric, form(one.signal), form(one.noise)),
            *(_format_ratio(one.snr), form(one.seed_noise), form(one.sampling_noise)),
            *(_format_number(one.detectable), *_format_decisions(one)),
        )


def select_metrics(found: MeasuredSet) -> list[MetricSignal]:
    """Select the metrics that are shown: the best of those with a score at every checkpoint; of
    best ones that measure the same, one is enough.
    """
    card = found.card
    known = {one.metric: one for one in card.metrics}
    others = [known[name] for name in found.scores.metrics if name in known.keys() - {*HEADLINE}]
    best = sorted(others, key=lambda one: _find_accuracy(one, 25) or 0.0, reverse=True)
    distinct = {(_format_ratio(one.snr), one.decisions): one for one in reversed(best)}
    chosen = [one for one in best if one in distinct.values()][:BEST]
    return [*(known[name] for name in HEADLINE), *chosen, *_list_postgen(card)]


def _list_pregen(card: SignalCard) -> list[MetricSignal]:
    return [
        one for one in card.metrics if catalogue.find_metric(one.metric).name in catalogue.PREGEN
    ]


def _list_postgen(card: SignalCard) -> list[MetricSignal]:
    """List post-gen metrics of which all trainings have final scores."""
    shown = (one for one in card.metrics if one.metric in catalogue.POSTGEN)
    return [one for one in shown if one.trainings == len(card.trainings)]


def _find_accuracy(one: MetricSignal, percent: int) -> float | None:
    return next((each.accuracy for each in one.decisions if each.percent == percent), None)


def list_averages(found: MeasuredSet) -> Iterator[Sequence[str]]:
    """Medians over groups of metrics, with and without averaging of checkpoints."""
    for average in AVERAGES:
        card = found.cards[TARGET, average]
        groups = {
            "headline, pre-gen": [one for one in card.metrics if one.metric in HEADLINE],
            "all pre-gen": _list_pregen(card),
            "post-gen": _list_postgen(card),
        }
        for name, group in groups.items():
            ratios = [one.snr for one in group if one.snr is not None]
            decided = (
                [
                    accuracy
                    for one in group
                    if (accuracy := _find_accuracy(one, percent)) is not None
                ]
                for percent in PERCENTS
            )
            medians = (_format_accuracy(median(each)) for each in decided)
            label = f"{name} ({len(group)})"
            yield found.tried.name, label, str(average), _format_ratio(median(ratios)), *medians


def list_alike(found: MeasuredSet) -> Iterator[Sequence[str]]:
    """Decision accuracy of pairs of one architecture, and of two."""
    names = [catalogue.find_metric(name).name for name in HEADLINE]
    for same, label in ((True, "one"), (False, "two")):
        kept = found.scores.select_architecture(same=same)
        measured = [found.scores.measure(percent, kept) for percent in PERCENTS]
        rows = {"best pre-gen of these pairs": [each.max() for each in measured]}
        for shown, name in zip(HEADLINE, names, strict=True):
            rows[shown] = [each[found.scores.metrics.index(name)] for each in measured]
        rows[TARGET] = [found.own.measure(percent, kept)[0] for percent in PERCENTS]
        for metric, accuracies in rows.items():
            head = found.tried.name, label, str(found.scores.count_pairs(kept)), metric
            yield *head, *map(_format_accuracy, accuracies)


def list_choices(found: MeasuredSet, others: Sequence[MeasuredSet]) -> Iterator[Sequence[str]]:
    """Decision accuracy of metrics by how they were chosen: with these pairs at hand, on other
    trainings, and beforehand.
    """
    own, judge = found.scores, signal_choices.judge_choices
    choices = {"chosen on half of the recipes": [judge(own, percent) for percent in PERCENTS]}
    for other in others:
        choices[f"chosen on {other.tried.name}"] = [
            signal_choices.judge_transfer(other.scores, own, percent) for percent in PERCENTS
        ]
    for target in TARGETS:
        head = found.tried.name, target
        known = {one.metric: one for one in found.cards[target, 1].metrics}
        candidates = [known[name] for name in own.metrics if name in known]
        best = (
            max(_find_accuracy(one, percent) or 0.0 for one in candidates) for percent in PERCENTS
        )
        yield *head, "best pre-gen of these pairs", *map(_format_accuracy, best)
        if target == TARGET:
            for label, accuracies in choices.items():
                yield *head, label, *map(_format_accuracy, accuracies)
        for metric in (*HEADLINE, target):
            decided = (_find_accuracy(known[metric], percent) for percent in PERCENTS)
            yield *head, metric, *map(_format_accuracy, decided)


def print_tables(found: Sequence[MeasuredSet]) -> Iterator[str]:
    yield from _format_table(SETS, (row for one in found for row in list_sets(one)))
    for one in found:
        yield from _format_table(METRICS, list_metrics(one))
    yield from _format_table(AVERAGED, (row for one in found for row in list_averages(one)))
    yield from _format_table(ALIKE, (row for one in found for row in list_alike(one)))
    chosen = (
        row
        for one in found
        for row in list_choices(one, [other for other in found if other is not one])
    )
    yield from _format_table(CHOICES, chosen)


def _format_table(heading: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield ""
    for row in (heading, ["---"] * len(heading), *rows):
        yield f"| {' | '.join(row)} |"


def _format_decisions(one: MetricSignal) -> Iterator[str]:
    decided = {each.percent: each for each in one.decisions}
    for percent in PERCENTS:
        each = decided.get(percent)
        interval = None if each is None else each.interval
        bounds = "" if interval is None else " [{:.2f}, {:.2f}]".format(*interval)
        yield _format_accuracy(each and each.accuracy) + bounds


def _format_accuracy(value: float | None) -> str:
    return "" if value is None or np.isnan(value) else f"{value:.2f}"


def _format_share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.3g} %"


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _format_ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="parity.signal_page", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a folder for all results")
    parser.add_argument("--set", action="append", choices=("few", "shapes", "flickr8k"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    data = Path(os.environ.get("PRESCORE_DATA", _BACK / "shared" / "data"))
    sets = {"few": FEW, "shapes": SHAPES, "flickr8k": signal_trainings.flickr8k_set(data)}
    with Client(here=options.out) as client:
        chosen = options.set or ("shapes", "flickr8k")
        found = [measure_set(client, sets[name], options.out) for name in chosen]
    print("\n".join(print_tables(found)))


if __name__ == "__main__":
    main()
