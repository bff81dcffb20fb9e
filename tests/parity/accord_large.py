"""What the metric `accord_large` is learned from, and tested on. The weights that are shipped were
made by

PYTHONPATH=.:tests python -m parity.accord_large ../shared/data MODEL \
    workers/metrics/accord/minilm.safetensors

MODEL: the folder of all-MiniLM-L6-v2 (`prescore assets add minilm`).
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from parity import accord, systems
from parity.accord import Agreement, LeftOut
from parity.learned_sets import Judged
from workers.bench.learned import accord_training
from workers.bench.learned.accord_contrasts import Contrast
from workers.metrics import postgen, references
from workers.metrics.accord import large_model, model
from workers.metrics.accord.large_model import AccordLargeModel
from workers.metrics.families import accord_large, bertscore
from workers.metrics.family import FamilyScores, Floats, ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.vectors import text_encoder
from workers.metrics.vectors.text_encoder import TextEncoder

RECIPE = accord_training.AccordRecipe(beta=0.03)
FEW = 0.1  # of people's captions have less than what is enough of recall and of a sentence


@dataclass(frozen=True)
class Written:
    """A contrast's captions as they were written. Where nobody wrote the wrong one, both it and the
    right one are tokens joined by blanks: a full stop would tell them apart.
    """

    right: str
    wrong: str
    references: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Read:
    """Of captions: the features, and BERTScore by the same encoder."""

    features: Floats
    bertscore: Floats

    def __getitem__(self, part: slice) -> "Read":
        return Read(self.features[part], self.bertscore[part])


@dataclass(frozen=True, eq=False)
class Learning:
    """The contrasts that are learned from, and what is weighted of their captions."""

    contrasts: Sequence[Contrast]
    near: Floats
    enough: Floats
    right: Floats
    wrong: Floats


def learning(data: Path, encoder: TextEncoder, jvm: Jvm) -> Learning:
    chosen, said = learned_from(data, jvm)
    right, wrong = (read.features for read in measured(chosen, said, encoder, jvm))
    near, enough = thresholds(right)
    found = (accord_large.weigh_features(each, near, enough) for each in (right, wrong))
    return Learning(chosen, near, enough, *found)


def thresholds(right: Floats) -> tuple[Floats, Floats]:
    """`near` is the median of people's own captions, as is what is enough of precision; of recall
    and of the closest sentence, what nine of ten have is enough.
    """
    meant = right[:, 1:5]
    near: Floats = np.median(meant, axis=0)
    return near, np.array([near[0], *np.quantile(meant[:, 1:3], FEW, axis=0)])


def learned(seen: Learning, encoder: TextEncoder) -> AccordLargeModel:
    """The shipped weights, learned anew."""
    kinds = np.array([each.kind for each in seen.contrasts])
    weights, middle = accord_training.fit_weights_and_middle(
        seen.right, seen.wrong, kinds, RECIPE.beta
    )
    about = {
        "source": accord.SOURCE,
        "contrasts": accord_training.count_contrasts(seen.contrasts),
        "recipe": vars(RECIPE),
    }
    return AccordLargeModel(
        model.load_shipped_accord(),
        encoder.name,
        accord_large.WEIGHTED,
        weights,
        seen.near,
        seen.enough,
        middle,
        about,
    )


def learned_from(data: Path, jvm: Jvm) -> tuple[list[Contrast], dict[str, str]]:
    """The contrasts that `accord` was learned from, and tokens by text."""
    images = list(systems.coco(data, "val").values())
    return accord.learned_from(data, jvm), accord.tokens_of(images, jvm)


def written(chosen: Sequence[Contrast], said: Mapping[str, str]) -> list[Written]:
    texts = {said[text]: text for text in sorted(said, reverse=True)}
    found = []
    for each in chosen:
        there = each.right in texts and each.wrong in texts
        right, wrong = (
            texts[caption] if there else caption for caption in (each.right, each.wrong)
        )
        found.append(Written(right, wrong, tuple(texts[said_] for said_ in each.references)))
    return found


def measured(
    chosen: Sequence[Contrast], said: Mapping[str, str], encoder: TextEncoder, jvm: Jvm
) -> tuple[Read, Read]:
    """The right and the wrong captions."""
    as_written = written(chosen, said)
    task = _task(
        [each.right for each in chosen] + [each.wrong for each in chosen],
        [each.right for each in as_written] + [each.wrong for each in as_written],
        [each.references for each in chosen] * 2,
        [each.references for each in as_written] * 2,
        encoder,
        jvm,
    )
    found = _read(task)
    return found[: len(chosen)], found[len(chosen) :]


def _task(
    captions: Sequence[str],
    texts: Sequence[str],
    sets: Sequence[tuple[str, ...]],
    people: Sequence[tuple[str, ...]],
    encoder: TextEncoder,
    jvm: Jvm,
) -> ScoringInput:
    """Captions and their references: both as tokens, and as they were written."""
    distinct = dict(zip(sets, people, strict=True))
    places = {tokens: place for place, tokens in enumerate(distinct)}
    return ScoringInput(
        captions,
        np.array([places[each] for each in sets], np.int64),
        references.index_tokens(list(distinct), "ptb"),
        jvm,
        tokenizer="ptb",
        tools={"encoder": encoder, "texts": texts, "people": list(distinct.values())},
        others=postgen.score_family,
    )


def _read(task: ScoringInput) -> Read:
    given = bertscore.complete(task)
    features = accord_large.measure_features(given, model.load_shipped_accord())
    return Read(features, _as_written("bertscore", given))


def _as_written(metric: str, task: ScoringInput) -> Floats:
    """The scores of captions and references as people wrote them."""
    given = replace(task, captions=task.texts, tokenizer=None)
    return postgen.score_family(metric, given).captions[metric]


def alone(read: Read) -> dict[str, Floats]:
    """Scores of the metric, and of what it is made of. Those of `accord` are in the order of its
    sums.
    """
    shipped = large_model.load_shipped_large_model()
    columns = dict(zip(accord_large.NAMES, read.features.T, strict=True))
    return {
        "accord_large": shipped(
            accord_large.weigh_features(read.features, shipped.near, shipped.enough)
        ),
        "accord": columns["accord_sum"],
        "bertscore": read.bertscore,
        "sentence_best": columns["sentence_best"],
    }


def agreement(
    judged: Judged, encoder: TextEncoder, jvm: Jvm, draws: int = 1000
) -> dict[str, Agreement]:
    """Of the metric, of what it is made of, of RefScore by the same model, and of the lexical ones;
    `ahead` is the metric less the one of the row.
    """
    captions, sets = accord.tokens_of_judged(judged, jvm)
    task = _task(captions, judged.captions, sets, judged.reference_sets, encoder, jvm)
    scores = alone(_read(task)) | {"refscore": _as_written("refscore", task)}
    scores |= accord.scored(captions, sets, jvm, accord.LEXICAL)
    return accord.ahead("accord_large", scores, judged, draws)


def right(
    chosen: Sequence[Contrast], better: Read, worse: Read
) -> dict[str, dict[str, np.ndarray]]:
    """By metric and kind, for each contrast 1 if the right caption scores more, 1/2 if both score
    the same.
    """
    ours, theirs = alone(better), alone(worse)
    found = {name: accord.solved(ours[name], theirs[name]) for name in ours}
    return accord.by_kind(chosen, found)


def left_out(
    seen: Learning, unseen: Mapping[str, tuple[Sequence[Contrast], tuple[Read, Read]]], jvm: Jvm
) -> dict[str, list[LeftOut]]:
    """As `accord.left_out`; the weights within the sum of `accord` are the shipped ones."""
    weighed = {}
    for name, (chosen, reads) in unseen.items():
        better, worse = (
            accord_large.weigh_features(each.features, seen.near, seen.enough) for each in reads
        )
        weighed[name] = (chosen, (better, worse))
    return accord.left_out(seen.contrasts, (seen.right, seen.wrong), weighed, jvm, RECIPE.beta)


def people_and_systems(
    data: Path, dataset: str, images: int, encoder: TextEncoder, jvm: Jvm
) -> dict[str, FamilyScores]:
    """As `accord.people_and_systems`, of so many images."""
    people = [image[1:] for image in systems.raw(data, dataset)[:images]]
    tools = {"encoder": encoder, "embedded": bertscore.prepare(people, encoder)}
    return accord.people_and_systems(data, dataset, jvm, "accord_large", images, **tools)


if __name__ == "__main__":
    with Jvm() as java:
        reader = text_encoder.read_encoder(Path(sys.argv[2]))
        large_model.write_large_model(
            Path(sys.argv[3]), learned(learning(Path(sys.argv[1]), reader, java), reader)
        )
