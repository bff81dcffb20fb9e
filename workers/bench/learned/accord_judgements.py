"""Training of `accord` from people's judgements: preferred captions above the others.

Photos are parted: what is tested with was not learned from, neither judgements nor captions.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from service.contract.errors import RequestRefused
from service.contract.metrics import catalogue
from service.contract.metrics.objectives import JUDGED
from workers.bench.judgements import ALL, JudgedPair, Judgements, RatedCaption
from workers.bench.judging import scoring
from workers.bench.judging.scoring import cluster_lines
from workers.bench.judging.verdict import judge_metrics
from workers.bench.learned import accord_training
from workers.bench.learned.accord_language import learn_language
from workers.bench.learned.accord_training import (
    AccordTrainingOptions,
    CaptionsByImage,
    TokenizedImages,
)
from workers.bench.learned.training_sets import identify_photo, split_images
from workers.metrics.accord import model
from workers.metrics.accord.language import AccordLanguage
from workers.metrics.accord.model import AccordWeights
from workers.metrics.learned import soundness
from workers.progress import Progress

FEWEST = 40  # photos that people judged, a quarter of which is the test
_SHARES = (3, 1)  # of photos to learn from and to test with
_LINES, _EACH = 200, 100  # rated captions of a photo, and pairs of them, at most
_BESIDE = (model.FAMILY, "cider_d")  # the shipped model, and the metric of words that is usual
_OWN = catalogue.name_learned_metric(model.FAMILY, "0" * 64)  # before the model has a file
THIS_MODEL = "this model"


@dataclass(frozen=True)
class JudgementParts:
    """Judgements to learn from and to test with, and the photos of the latter."""

    learned: Judgements
    test: Judgements
    photos: tuple[frozenset[str], frozenset[str]]


def learn_from_judgements(
    people: CaptionsByImage, judgements: Judgements, asked: AccordTrainingOptions
) -> AccordWeights:
    """Learn from judgements. The language is learned from `people`; if there are none, it is that
    of the shipped model. Raises RequestRefused if there are too few, MetricFailed if what was
    learned says nothing of captions, Canceled as metrics do.
    """
    parted = split_judgements(judgements, asked.recipe.seed)
    known, images = _language(people, parted, asked)
    given = scoring.collect_captions(parted.learned)
    better, worse, photos = find_preferences(parted.learned, given, asked.recipe.seed)
    if not len(better):
        raise RequestRefused("expected captions that people judged differently, found none")
    said = asked.tokens([*given.texts, *(text for each in given.reference_sets for text in each)])
    sets = [[said[text] for text in each] for each in given.reference_sets]
    tokens = [said[text] for text in given.texts]
    measured = accord_training.measure_tokens(tokens, given.rows, sets, known, asked)
    right, wrong = measured[better], measured[worse]
    weights, middle = accord_training.fit_weights_and_middle(
        right, wrong, photos, asked.recipe.beta
    )
    about = {
        "objective": JUDGED,
        "images": images,
        "contrasts": {},
        "right": {},
        "recipe": vars(asked.recipe),
        "inputs": dict(asked.inputs),
        "judged": {"photos": len(parted.photos[0]), "pairs": len(better)},
    }
    found = AccordWeights(known, weights, middle, about)
    soundness.check_model(found, asked.score)
    agreement = {"photos": len(parted.photos[1]), **_agreement(found, parted.test, asked)}
    return AccordWeights(known, weights, middle, {**about, "agreement": agreement})


def split_judgements(judgements: Judgements, seed: int) -> JudgementParts:
    """Part judgements by photo, whatever its names; lines without a name by their references."""
    photos = _photos(judgements)
    distinct = {photo for lines in photos for photo in lines}
    if len(distinct) < FEWEST:
        raise RequestRefused(
            f"expected judgements of at least {FEWEST} photos, found {len(distinct)}: a quarter of "
            "them is kept for the test"
        )
    ours, theirs = split_images(distinct, _SHARES, seed, photo=str)
    learned, test = (_select_photos(judgements, photos, kept) for kept in (ours, theirs))
    return JudgementParts(learned, test, (ours, theirs))


def _photos(judgements: Judgements) -> tuple[list[str], list[str]]:
    """The photo of each rated line, and of each pair."""
    given = scoring.collect_captions(judgements)
    numbers = cluster_lines(judgements, given)
    every = [*numbers.rated.tolist(), *numbers.pairs.tolist()]
    names: dict[int, str] = {}
    for number, line in zip(every, _lines(judgements), strict=True):
        if line.image is not None:
            names.setdefault(number, identify_photo(line.image))
    found = [names.get(number, f"references {number}") for number in every]
    return found[: len(judgements.rated)], found[len(judgements.rated) :]


def _lines(judgements: Judgements) -> list[RatedCaption | JudgedPair]:
    return [*judgements.rated, *judgements.pairs]


def _select_photos(
    judgements: Judgements, photos: tuple[Sequence[str], Sequence[str]], kept: frozenset[str]
) -> Judgements:
    rated, pairs = photos
    return Judgements(
        [line for line, photo in zip(judgements.rated, rated, strict=True) if photo in kept],
        [line for line, photo in zip(judgements.pairs, pairs, strict=True) if photo in kept],
    )


def find_preferences(
    judgements: Judgements, given: scoring.JudgedCaptions, seed: int
) -> tuple[Sequence[int], Sequence[int], np.ndarray]:
    """Places of captions preferred to others of their photo, of these, and the photos."""
    rated, pairs = _photos(judgements)
    found = [
        ((a, b) if line.preferred == "a" else (b, a), photo)
        for line, photo, (a, b) in zip(judgements.pairs, pairs, given.pairs.tolist(), strict=True)
    ]
    by_photo: dict[str, list[tuple[float, int]]] = {}
    for line, photo, place in zip(judgements.rated, rated, given.rated.tolist(), strict=True):
        by_photo.setdefault(photo, []).append((statistics.fmean(line.ratings), place))
    rng = np.random.default_rng(seed)
    for photo, lines in by_photo.items():
        ordered = [
            (one, other) if first > second else (other, one)
            for (first, one), (second, other) in combinations(lines[:_LINES], 2)
            if first != second and one != other
        ]
        drawn = sorted(rng.permutation(len(ordered))[:_EACH].tolist())
        found += [(ordered[place], photo) for place in drawn]
    better, worse = [one for (one, _), _ in found], [other for (_, other), _ in found]
    return better, worse, np.array([photo for _, photo in found])


def _language(
    people: CaptionsByImage, parted: JudgementParts, asked: AccordTrainingOptions
) -> tuple[AccordLanguage, int]:
    """The language and its number of images, without photos or captions of the test."""
    if not people:
        shipped = model.load_shipped_accord().language
        counted = replace(shipped.frequencies, tokenizer=asked.tokenizer)
        return replace(shipped, frequencies=counted), 0
    known = {text for line in _lines(parted.test) for text in line.references}
    ours = {
        image: said
        for image, said in people.items()
        if identify_photo(image) not in parted.photos[1] and known.isdisjoint(said)
    }
    spoken = TokenizedImages.of(ours, asked)
    language = learn_language(spoken.images, asked.tokenizer, spoken.stems)
    return language, len(spoken.images)


def _agreement(
    own: AccordWeights, test: Judgements, asked: AccordTrainingOptions
) -> dict[str, Any]:
    """Agreement with the people of the test, beside other metrics."""

    def told(what: str) -> Progress:
        return partial(asked.report, f"test: {what}".replace(_OWN, THIS_MODEL))

    given = scoring.collect_captions(test)
    tools = {_OWN: {"model": own, "name": _OWN}}
    scored = scoring.score_captions(
        given,
        [_OWN, *_BESIDE],
        asked.tokenizer,
        asked.jvm,
        bring=lambda task, _: tools.get(task, {}),
        told=told,
    )
    if _OWN in scored.missing:
        raise scored.missing[_OWN]
    found = judge_metrics(test, given, scored, "flat")
    rows = {name: _row(found, name) for name in scored.values}
    return {
        "rated": len(test.rated),
        "pairs": len(test.pairs),
        "metrics": {THIS_MODEL if name == _OWN else name: row for name, row in rows.items()},
    }


def _row(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    rated, pairs = found["rated"].get(name), found["pairs"].get(name)
    return {
        "kendall_c": rated and rated["kendall_c"],
        "kendall_c_interval": rated and rated["intervals"]["kendall_c"],
        "right": pairs and pairs[ALL]["half"],
        "right_interval": pairs and pairs[ALL]["half_interval"],
    }
