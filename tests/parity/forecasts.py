"""Forecasts of evaluations whose training run is left out: what `FORECASTS.md` says.

Captioners trained here on shapes and on Flickr8k's features, the two runs of `data/runs`, and the
twelve tuned captioners of each published dataset. Greedy captions, Karpathy's tokens.

    PYTHONPATH=tests:service/client:. python -m parity.forecasts FOLDER/*.json

tells forecasts beyond the range of the trainings of `SIGNAL.md`, whose command wrote these files.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from helpers.histories import HITS, PREFIX, evaluation, pregen
from parity import flickr8k, systems
from service.contract.formats import bundles
from service.contract.formats.vocabularies import MODEL_TOKENIZERS
from service.contract.plan.estimates import PREDICTORS
from service.contract.results import PastEvaluation
from workers.analysis.forecasts import forecast_metrics
from workers.inference import decoding, features, scoring, vocabulary
from workers.inference.captioners import RecurrentCaptioner
from workers.lab import shapes, training_runs
from workers.lab.training import CaptionedImages
from workers.metrics import postgen, references
from workers.metrics import pregen as pregen_metrics

METRICS = ("cider_d", "bleu_1", "bleu_4", "rouge_l")
PUBLISHED = {"METEOR": "meteor", "CIDEr": "cider_d", "SPICE": "spice", "WMD": "wmd"}
EPOCH = "epoch"  # beside the scores of an evaluation: 0 for an untrained captioner
GREEDY = decoding.DecodingOptions(beam=1, min_words=0, max_words=20)
Evaluation = PastEvaluation


@dataclass(frozen=True)
class Training:
    """A run that is trained here."""

    architecture: str
    size: int
    seed: int
    epochs: int
    batch: int | None = None
    images: int | None = None  # of the training split, the first ones; else all

    @property
    def name(self) -> str:
        return f"{self.architecture} {self.size}, seed {self.seed}"


SHAPES = [
    Training(architecture, size, seed, epochs=10)
    for architecture in ("init", "pre", "par", "merge")
    for size, seed in ((64, 11), (48, 12))
]
FLICKR8K = [
    Training(architecture, size, seed, epochs=7, images=1500)
    for architecture, size, seed in (
        *(("merge", 128, 0), ("init", 128, 0), ("par", 128, 0), ("pre", 128, 0)),
        *(("merge", 64, 1), ("init", 96, 1)),
    )
]


@dataclass(frozen=True)
class Answered:
    """A forecast of one metric, the score that it is of, and the forecast from the same history
    for an evaluation at the better end of its range.
    """

    forecast: Mapping[str, Any]
    truth: float
    at_end: Mapping[str, Any] | None

    @property
    def is_beyond(self) -> bool:
        return self.forecast["beyond"] is not None or "so far beyond" in (self.reason or "")

    @property
    def reason(self) -> str | None:
        return self.forecast["none_because"]

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """Whether it is covered, half the width, the error, and how many times as wide as at the
        better end.
        """
        low, high = self.forecast["interval"]
        times = _longer_side(self.forecast) / _longer_side(self.at_end) if self.at_end else 1.0
        error = abs(self.forecast["value"] - self.truth)
        return float(low <= self.truth <= high), (high - low) / 2, error, times


def _longer_side(forecast: Mapping[str, Any]) -> float:
    """Of an interval, which the limits of its metric may cut off on one side."""
    low, high = forecast["interval"]
    return max(high - forecast["value"], forecast["value"] - low)


@dataclass(frozen=True)
class Outcome:
    """Of one metric, over evaluations: each forecast from those of other runs."""

    metric: str
    asked: int
    given: int
    covered: int
    half_width: float
    error: float  # mean absolute
    most_times: float  # the most that a half width exceeds that at the better end
    reasons: tuple[str, ...]  # of those that were not given

    @property
    def row(self) -> tuple[str, ...]:
        share = f"{100 * self.covered / self.given:.0f} %" if self.given else ""
        numbers = (f"{self.half_width:.3f}", f"{self.error:.3f}") if self.given else ("", "")
        return (self.metric, str(self.asked), str(self.given), str(self.covered), share, *numbers)

    @property
    def times(self) -> str:
        return f"{self.most_times:.2f}" if self.given else ""


def leave_out_runs(evaluations: Sequence[Evaluation], metric: str) -> list[Answered]:
    return [
        ask_of([other for other in evaluations if other.run != one.run], one, metric)
        for one in evaluations
    ]


def hold_out_best(evaluations: Sequence[Evaluation], metric: str) -> list[Answered]:
    """Every run that is the best so far, by perplexity, from the runs that are worse."""
    least: dict[str, float] = {}
    for one in evaluations:
        least[one.run] = min(one.scores["perplexity"], least.get(one.run, np.inf))
    return [
        ask_of([other for other in evaluations if least[other.run] > least[one.run]], one, metric)
        for one in evaluations
    ]


def list_beyond(name: str, evaluations: Sequence[Evaluation]) -> Iterator[tuple[str, ...]]:
    """A row for each metric: forecasts beyond the range of those held out as best so far."""
    for metric in METRICS:
        found = hold_out_best(evaluations, metric)
        outcome = sum_up(metric, [one for one in found if one.is_beyond])
        yield (name, *outcome.row, outcome.times)


def ask_of(history: Sequence[Evaluation], one: Evaluation, metric: str) -> Answered:
    found = forecast_metrics(history, [metric], pregen(one))[metric]
    at_end = None
    if found["beyond"] is not None:
        predictor = found["card"]["predictor"]
        ends = found["card"]["range"]
        end = ends[0] if predictor == "perplexity" else ends[1]
        best = replace_score(one, predictor, end)
        at_end = forecast_metrics(history, [metric], pregen(best))[metric]
    return Answered(found, one.scores[metric], at_end)


def replace_score(one: Evaluation, metric: str, value: float) -> Evaluation:
    return one.model_copy(update={"scores": {**one.scores, metric: value}})


def sum_up(metric: str, asked: Sequence[Answered]) -> Outcome:
    given = [one.numbers for one in asked if one.reason is None]
    covered, half, error, times = np.array(given).T if given else np.zeros((4, 1))
    return Outcome(
        metric,
        len(asked),
        len(given),
        int(covered.sum()),
        float(half.mean()),
        float(error.mean()),
        float(times.max()),
        tuple(one.reason for one in asked if one.reason),
    )


def card_row(evaluations: Sequence[Evaluation], metric: str) -> tuple[str, ...]:
    card = forecast_metrics(evaluations, [metric], pregen(evaluations[0]))[metric]["card"]
    errors = (f"{card[name]:.4f}" for name in ("error", "error_without"))
    # A rank correlation of few may lie halfway between two numbers of two digits: its last bit,
    # which another CPU sums otherwise, must not decide.
    agreements = (round(card[name], 9) for name in ("rank_agreement", "rank_agreement_within"))
    ranks = (f"{agreement:+.2f}" for agreement in agreements)
    return (*errors, *ranks)


def shapes_runs(folder: Path) -> list[Evaluation]:
    shapes.make_shapes(folder, 1200, seed=0)
    return [one for training in SHAPES for one in train(folder, training)]


def flickr8k_runs(data: Path, folder: Path) -> list[Evaluation]:
    """Those trained here, and the two that were trained longer, on all images."""
    flickr8k.make_bundle(data, folder)
    found = [one for training in FLICKR8K for one in train(folder, training)]
    scorer = _Scorer([item.references for item in bundles.read_split(folder, "test")])
    for architecture in ("init", "merge"):
        run = np.load(data / "runs" / f"{architecture}.npz")
        columns = (run[name] for name in ("epoch", "logp", "rank", "greedy"))
        for epoch, logp, rank, captions in zip(*columns, strict=True):
            shown = pregen_metrics.scores(
                logp, rank, run["caption_offsets"], run["image_offsets"], PREDICTORS
            )
            scores = scorer.scores([str(caption) for caption in captions]) | {EPOCH: float(epoch)}
            found.append(_evaluation(f"{architecture} of data/runs", architecture, shown, scores))
    return found


def published(data: Path, *, runs: bool) -> dict[str, list[Evaluation]]:
    """By dataset: its twelve whole-set models; told apart as runs, or by architecture alone."""
    found: dict[str, list[Evaluation]] = {}
    for row in systems.whole_sets(data):
        architecture = row["architecture"]
        shown = {
            "perplexity": float(row["geomean_join_pplx_none"]),
            HITS: 1 - float(row["mean_join_normcount_filter0"]),  # theirs keeps the misses
            PREFIX: float(row[PREFIX]),
        }
        scores = {ours: float(row[theirs]) for theirs, ours in PUBLISHED.items()}
        name = f"{architecture} {row['run']}" if runs else architecture
        one = _evaluation(name, architecture, shown, scores)
        found.setdefault(row["dataset"], []).append(one)
    return found


def train(folder: Path, training: Training) -> Iterator[Evaluation]:
    """An evaluation after each epoch."""
    run = training_runs.prepare_training(
        folder,
        architecture=training.architecture,
        sizes={"cell": "gru", "size": training.size},
        at_least=5,
        splits=("train", "val"),
        device="cpu",
    )
    if training.images is not None:
        part = run.training.captions.part(0, training.images)
        run = replace(run, training=CaptionedImages(run.training.features[: training.images], part))
    items = bundles.read_split(folder, "test")
    people = [item.references for item in items]
    description = run.description
    rows = features.read_features(folder, [item.image for item in items], description.encoder)
    encoded = vocabulary.encode_captions(people, description.vocabulary, description.tokenizer)
    scorer = _Scorer(people)
    epochs = run.train(epochs=training.epochs, batch=training.batch, seed=training.seed)
    for number, epoch in enumerate(epochs):
        shown, captions = _seen(epoch.model, rows, encoded)
        scores = scorer.scores(captions) | {EPOCH: float(number)}
        yield _evaluation(training.name, training.architecture, shown, scores)


def _seen(
    model: RecurrentCaptioner, rows: np.ndarray, encoded: vocabulary.EncodedCaptions
) -> tuple[dict[str, float], list[str]]:
    found = scoring.compute_columns(model, rows, encoded)
    shown = pregen_metrics.scores(
        found.logp, found.rank, found.caption_offsets, found.image_offsets, PREDICTORS
    )
    captions = decoding.decode_captions(model, rows, GREEDY)
    return shown, [decoding.detokenize_caption(model, caption) for caption in captions]


class _Scorer:
    def __init__(self, people: Sequence[Sequence[str]]) -> None:
        words = MODEL_TOKENIZERS[training_runs.TOKENIZER]
        tokens = [[" ".join(words(text)) for text in image] for image in people]
        self._prepared = references.prepare_references(tokens, "none", None)

    def scores(self, captions: Sequence[str]) -> dict[str, float]:
        places = np.arange(len(captions))
        found: dict[str, float] = {}
        for family in ("cider_d", "bleu", "rouge_l"):
            scored = postgen.score_tokens(family, captions, self._prepared, places, None)
            found |= scored.corpus
        return {metric: found[metric] for metric in METRICS}


def _evaluation(
    run: str, architecture: str, shown: Mapping[str, float], scores: Mapping[str, float]
) -> Evaluation:
    return evaluation(
        run,
        shown[HITS],
        dict(scores),
        architecture,
        perplexity=shown["perplexity"],
        prefix=shown[PREFIX],
    )


def read_trainings(path: Path) -> list[Evaluation]:
    """Read the scores that the command of `SIGNAL.md` writes."""
    return [
        _evaluation(row["run"], row["recipe"].split()[0], row["scores"], row["scores"])
        for row in json.loads(path.read_text("utf-8"))
    ]


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        for row in list_beyond(f"{path.stem} of SIGNAL.md", read_trainings(path)):
            print(f"| {' | '.join(row)} |")
