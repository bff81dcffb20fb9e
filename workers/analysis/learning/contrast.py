"""A model of `accord` from captions alone: people's captions above wrong ones made of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from service.contract.metrics.objectives import CONTRAST
from workers.analysis.judging import distractors
from workers.analysis.learning.asked import Asked, People, Spoken
from workers.files.judgements import Pair
from workers.metrics.accord import training
from workers.metrics.accord.contrasts import Contrast
from workers.metrics.accord.model import Model
from workers.metrics.accord.training import LearnedAccord
from workers.metrics.accord.words import ENGLISH
from workers.metrics.learned import soundness

_TIE = 1e-10  # scores that are nearer than this are the same


def learn(people: People, asked: Asked) -> Model:
    """Learn from images' captions, of which each is compared with the image's others. Raises
    RequestRefused if there are too few, MetricFailed if what was learned says nothing of captions,
    Canceled as metrics do.
    """
    spoken = Spoken.of(people, asked)
    pairs = made(spoken.texts, asked.recipe.seed) if spoken.stems == ENGLISH else []
    said = {**spoken.said, **asked.tokens(text for pair in pairs for text in (pair.a, pair.b))}
    learned = training.learn(
        spoken.images,
        distracted(pairs, said),
        asked.jvm,
        asked.recipe,
        score=asked.score,
        tokenizer=asked.tokenizer,
        progress=partial(asked.report, "features"),
        stems=spoken.stems,
        about={"objective": CONTRAST, "inputs": dict(asked.inputs)},
    )
    about = {**learned.model.about, "judged": None, "right": _right(learned), "agreement": None}
    model = replace(learned.model, about=about)
    soundness.check(model, asked.score)
    return model


def made(texts: Sequence[Sequence[str]], seed: int) -> list[Pair]:
    """The six tasks of `prescore judge`, made of these images; they are in English."""
    return list(distractors.make(texts, seed))


def distracted(pairs: Sequence[Pair], said: Mapping[str, str]) -> Iterator[Contrast]:
    """Such tasks as contrasts; `said` has the tokens of all texts."""
    for pair in pairs:
        right, wrong = (pair.a, pair.b) if pair.preferred == "a" else (pair.b, pair.a)
        others = tuple(said[text] for text in pair.references)
        yield Contrast(str(pair.category), said[right], said[wrong], others)


def _right(learned: LearnedAccord) -> dict[str, float]:
    """By kind, the share of the contrasts learned from that the model puts right; ties half."""
    better, worse = learned.model(learned.right), learned.model(learned.wrong)
    solved = (better > worse + _TIE) + 0.5 * (np.abs(better - worse) <= _TIE)
    kinds = np.array([each.kind for each in learned.contrasts])
    return {
        str(kind): round(float(solved[kinds == kind].mean()), 4)
        for kind in dict.fromkeys(kinds.tolist())
    }
