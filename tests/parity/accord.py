"""What the metric `accord` is learned from, and tested on. The model that is shipped was made by

PYTHONPATH=.:tests python -m parity.accord ../shared/data workers/metrics/accord/coco.safetensors
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parity import systems
from parity.learned_sets import Judged
from parity.resampling import Resampled, interval
from service.contract.metrics import catalogue
from workers.bench.judging import distractors
from workers.bench.learned import accord_contrasts, accord_training
from workers.bench.learned.accord_contrasts import Contrast
from workers.bench.learned.accord_training import AccordTrainingOptions
from workers.metrics import postgen, references
from workers.metrics.accord import model
from workers.metrics.accord.model import AccordWeights
from workers.metrics.family import FamilyScores
from workers.metrics.java.jvm import Jvm
from workers.metrics.tokens import tokenize

SOURCE = "COCO 2014 captions (COCO Consortium, CC-BY 4.0), Karpathy's validation split"
Texts = Sequence[Sequence[str]]
Features = tuple[np.ndarray, np.ndarray]  # of right captions, and of wrong ones
LEXICAL = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l", "cider_d", "meteor")

_TIE = 1e-10  # scores that are nearer than this are the same


def learned(data: Path, jvm: Jvm) -> AccordWeights:
    """The shipped model, learned anew from COCO's validation images."""
    texts, said, images = _coco(data, jvm)
    further = distracted(texts, said)
    return accord_training.learn_accord(
        images, further, _options(jvm), about={"source": SOURCE}
    ).model


def learned_from(data: Path, jvm: Jvm) -> list[Contrast]:
    """The contrasts that the shipped model was learned from."""
    texts, said, images = _coco(data, jvm)
    return accord_training.choose_contrasts(images, distracted(texts, said))


def _options(jvm: Jvm) -> AccordTrainingOptions:
    return AccordTrainingOptions(jvm, postgen.score_family, "ptb")


def _coco(data: Path, jvm: Jvm) -> tuple[Texts, dict[str, str], Texts]:
    """COCO's validation captions, the tokens of texts, and the captions as tokens."""
    texts = list(systems.coco(data, "val").values())
    said = tokens_of(texts, jvm)
    return texts, said, [tuple(said[text] for text in image) for image in texts]


def tokens_of(images: Texts, jvm: Jvm) -> dict[str, str]:
    """Texts with their tokens, those of the distractors among them."""
    texts = {text for image in images for text in image}
    for pair in distractors.make_distractors(images, 0):
        texts |= {pair.a, pair.b}
    ordered = sorted(texts)
    return dict(zip(ordered, tokenize(ordered, "ptb", jvm), strict=True))


def distracted(images: Texts, said: Mapping[str, str]) -> Iterator[Contrast]:
    """The six tasks of `prescore judge`, made of these images."""
    pairs = distractors.make_distractors(images, 0)
    return accord_training.make_distractor_contrasts(pairs, said)


def held_out(images: Texts, jvm: Jvm, most: int, seed: int = 1) -> list[Contrast]:
    """Contrasts of every kind that were not learned from."""
    said = tokens_of(images, jvm)
    own = accord_contrasts.ContrastCorpus.of(
        [tuple(said[text] for text in image) for image in images]
    )
    return accord_contrasts.draw_contrasts(
        [*accord_contrasts.make_contrasts(own, seed), *distracted(images, said)], most, seed
    )


def scored(
    captions: Sequence[str], sets: Sequence[tuple[str, ...]], jvm: Jvm, names: Sequence[str]
) -> dict[str, np.ndarray]:
    """Scores of tokens by metrics; CIDEr-D takes document frequencies of all these reference sets,
    each counted once.
    """
    places = {each: place for place, each in enumerate(dict.fromkeys(sets))}
    prepared = references.index_tokens(list(places), "ptb")
    rows = np.array([places[each] for each in sets])
    found: dict[str, np.ndarray] = {}
    for task in dict.fromkeys(catalogue.find_metric_task(name) for name in names):
        found |= postgen.score_tokens(task, list(captions), prepared, rows, jvm).captions
    return {name: found[name] for name in names}


def right(contrasts_: Sequence[Contrast], jvm: Jvm, names: Sequence[str]) -> dict[str, dict]:
    """By metric and kind, for each contrast 1 if the right caption scores more, 1/2 if both score
    the same.

    A right caption is one of its image's captions. Were it beside another of them a reference,
    document frequencies would know its words, and not those of the wrong one: so each image has one
    set of references at a time.
    """
    found = {name: np.empty(len(contrasts_)) for name in names}
    for part in apart(contrasts_):
        chosen = [contrasts_[place] for place in part]
        captions = [each.right for each in chosen] + [each.wrong for each in chosen]
        sets = [each.references for each in chosen] * 2
        for name, scores in scored(captions, sets, jvm, names).items():
            found[name][part] = solved(*np.split(scores, 2))
    return by_kind(contrasts_, found)


def by_kind(
    contrasts_: Sequence[Contrast], found: Mapping[str, np.ndarray]
) -> dict[str, dict[str, np.ndarray]]:
    kinds = np.array([each.kind for each in contrasts_])
    return {
        name: {kind: each[kinds == kind] for kind in dict.fromkeys(kinds.tolist())}
        for name, each in found.items()
    }


def apart(contrasts_: Sequence[Contrast]) -> list[list[int]]:
    """The places of contrasts in groups, in each of which no image has two sets of references."""
    groups: dict[int, list[int]] = {}
    for place, each in enumerate(contrasts_):
        image = sorted([each.right, *each.references])
        groups.setdefault(image.index(each.right), []).append(place)
    return [groups[at] for at in sorted(groups)]


def solved(better: np.ndarray, worse: np.ndarray) -> np.ndarray:
    return (better > worse + _TIE) + 0.5 * (np.abs(better - worse) <= _TIE)


def measured(contrasts_: Sequence[Contrast], jvm: Jvm) -> Features:
    """The features of contrasts' captions, with the words of the shipped model."""
    known = model.load_shipped_accord().language
    return accord_training.measure_contrasts(contrasts_, known, _options(jvm))


@dataclass(frozen=True)
class LeftOut:
    """A kind of contrasts of a set, by weights that were learned without it: the share that is
    solved, that less CIDEr-D's share, and 1.96 standard errors of the difference.
    """

    solved: float
    ahead: float
    error: float


def left_out(
    contrasts_: Sequence[Contrast],
    seen: Features,
    unseen: Mapping[str, tuple[Sequence[Contrast], Features]],
    jvm: Jvm,
    beta: float = accord_training.AccordRecipe().beta,
) -> dict[str, list[LeftOut]]:
    """By kind, of each set of contrasts that were not learned from."""
    by_cider = {
        name: right(given, jvm, ["cider_d"])["cider_d"] for name, (given, _) in unseen.items()
    }
    kinds = np.array([each.kind for each in contrasts_])
    found: dict[str, list[LeftOut]] = {}
    for kind in dict.fromkeys(kinds.tolist()):
        kept = kinds != kind
        weights = accord_training.fit_weights((seen[0] - seen[1])[kept], kinds[kept], beta)
        for name, (given, features) in unseen.items():
            are = np.array([each.kind == kind for each in given])
            own = solved(*(part[are] @ weights for part in features))
            ahead_ = own - by_cider[name][kind]
            error = 1.96 * np.std(ahead_) / len(own) ** 0.5
            found.setdefault(kind, []).append(LeftOut(own.mean(), ahead_.mean(), error))
    return found


@dataclass(frozen=True)
class Agreement:
    """Kendall's tau c, its 95 % interval over images, and that of what is `less` below it."""

    tau: float
    interval: tuple[float, float]
    ahead: tuple[float, float]


def agreement(judged: Judged, jvm: Jvm, draws: int = 1000) -> dict[str, Agreement]:
    """Of the metric and the lexical ones; `ahead` is the metric less the one of the row."""
    found = scored(*tokens_of_judged(judged, jvm), jvm, ["accord", *LEXICAL])
    return ahead("accord", found, judged, draws)


def tokens_of_judged(judged: Judged, jvm: Jvm) -> tuple[list[str], list[tuple[str, ...]]]:
    """The captions and their references."""
    texts = {*judged.captions, *(text for each in judged.reference_sets for text in each)}
    said = dict(zip(texts, tokenize(list(texts), "ptb", jvm), strict=True))
    captions = [said[text] for text in judged.captions]
    return captions, [tuple(said[text] for text in each) for each in judged.reference_sets]


def ahead(
    own: str, scores: Mapping[str, np.ndarray], judged: Judged, draws: int
) -> dict[str, Agreement]:
    """Each metric's agreement, and by how much the own one is ahead of it."""
    resampled = Resampled(judged.images, judged.ratings, draws, seed=0)
    taus = {name: resampled(values) for name, values in scores.items()}
    return {
        name: Agreement(float(values[0]), interval(values), interval(taus[own] - values))
        for name, values in taus.items()
    }


def people_and_systems(
    data: Path,
    dataset: str,
    jvm: Jvm,
    metric: str = "accord",
    images: int | None = None,
    **tools: Any,
) -> dict[str, FamilyScores]:
    """Scores of people's first captions and of twelve captioners, all against the images' other
    captions; of the first `images`, or of all.
    """
    texts = systems.raw(data, dataset)[:images]
    columns = {"people": [image[0] for image in texts]}
    for name in systems.NAMES:
        columns[name] = systems.system(data, dataset, name).captions[:images]
    prepared = references.prepare_references([image[1:] for image in texts], "ptb", jvm)
    rows = np.arange(len(texts))
    found = {}
    for name, captions in columns.items():
        tokens = tokenize(captions, "ptb", jvm)
        found[name] = postgen.score_tokens(
            metric, tokens, prepared, rows, jvm, texts=captions, **tools
        )
    return found


if __name__ == "__main__":
    with Jvm() as java:
        model.write_accord(Path(sys.argv[2]), learned(Path(sys.argv[1]), java))
