"""Word Mover's Distance (Kusner et al. 2015) of captions to their references, and exp(-distance).

It is computed as in the scorer of the pre-gen paper: vectors are used as they are stored, NLTK's
stop words and words without a vector are left out, a side without words scores 0, the best
reference counts, and the corpus score is the mean over captions. Vectors scaled to unit length
first (gensim's default since version 4) give another metric, with far higher scores; the signature
says which.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed
from workers.metrics.family import FamilyFunctions, FamilyMeasures, Floats, ScoringInput, Statistics
from workers.metrics.vectors.word_vectors import WordVectors

_STEPS = 100_000  # of the solver, at most; some tens are usual
_OPTIMAL = 1


def make_wmd_family(name: str, *, unit: bool) -> FamilyFunctions:
    """The metrics `wmd` and `wmd_distance`, or the same of vectors scaled to unit length."""
    return FamilyFunctions(
        measure=lambda task: _measure(name, task, unit=unit),
        recipe=lambda task: _recipe(_vectors(task), unit=unit),
        corpus=lambda statistics: _corpus(name, statistics),
    )


def _measure(name: str, task: ScoringInput, *, unit: bool) -> FamilyMeasures:
    """Scores and distances; infinite ones, of no word with a vector, are left out of the mean."""
    vectors = _vectors(task)
    images = [task.references.captions[row] for row in np.unique(task.rows)]
    texts = dict.fromkeys([*task.captions, *(text for image in images for text in image)])
    bags = _bags(list(texts), vectors, unit=unit)
    place_of = {text: place for place, text in enumerate(texts)}
    distances = np.empty(len(task.captions))
    for place in task.places():
        references = [place_of[text] for text in task.references_of(place)]
        distances[place] = _nearest(bags, place_of[task.captions[place]], references)
    scores, measured = np.exp(-distances), np.isfinite(distances)
    return FamilyMeasures(
        {name: scores, f"{name}_distance": distances},
        {
            "similarity": scores,
            "distance": np.where(measured, distances, 0.0),
            "measured": measured.astype(np.float64),
        },
    )


def _corpus(name: str, statistics: Statistics) -> dict[str, float]:
    measured = float(np.sum(statistics["measured"]))
    distance = float(np.sum(statistics["distance"]))
    return {
        name: float(np.mean(statistics["similarity"])),
        f"{name}_distance": distance / measured if measured else float("inf"),
    }


def _recipe(vectors: WordVectors, *, unit: bool) -> str:
    length = "unit" if unit else "stored"
    source = vectors.source[:12]
    return f"vectors:{source}|length:{length}|stop:{STOP_WORDS_SIGNATURE}|oov:dropped"


def _vectors(task: ScoringInput) -> WordVectors:
    complaint = "WMD needs word vectors, and was given none"
    vectors: WordVectors = task.require_tool("vectors", complaint)
    return vectors


@dataclass(frozen=True)
class _WordBags:
    """Bags of words: text i has the rows bounds[i] to bounds[i+1] of `table`, with shares."""

    table: NDArray[np.float32]
    words: NDArray[np.int64]
    shares: Floats
    bounds: Sequence[int]

    def __getitem__(self, text: int) -> slice:
        return slice(self.bounds[text], self.bounds[text + 1])


def _bags(texts: Sequence[str], vectors: WordVectors, *, unit: bool) -> _WordBags:
    """The bags of texts. Words of a bag are in alphabetical order, whatever the other texts are."""
    split = [text.split() for text in texts]
    vocabulary = sorted({word for words in split for word in words})
    code_of = {word: code for code, word in enumerate(vocabulary)}
    codes = np.array([code_of[word] for words in split for word in words], np.int64)
    text_of = np.repeat(np.arange(len(texts)), [len(words) for words in split])
    rows = vectors.find(vocabulary)
    rows[[code for code, word in enumerate(vocabulary) if word in STOP_WORDS]] = -1
    known = rows[codes] >= 0
    one_number = text_of[known] * len(rows) + codes[known]  # of text and word
    found, counts = np.unique(one_number, return_counts=True)
    texts_of, words = np.divmod(found, max(len(rows), 1))
    totals = np.bincount(texts_of, counts, minlength=len(texts))
    bounds = np.searchsorted(texts_of, np.arange(len(texts) + 1))
    return _WordBags(
        _table(rows, vectors, unit=unit), words, counts / totals[texts_of], bounds.tolist()
    )


def _table(rows: NDArray[np.int64], vectors: WordVectors, *, unit: bool) -> NDArray[np.float32]:
    """A vector for each word. A word without a vector is in no bag, and gets the first one."""
    table = vectors.vectors[np.maximum(rows, 0)]
    if unit:
        lengths = np.linalg.norm(table, axis=1, keepdims=True)
        table /= np.where(lengths > 0, lengths, np.float32(1))
    return table


def _nearest(bags: _WordBags, caption: int, references: Sequence[int]) -> float:
    """The distance to the nearest reference.

    To move each word to its nearest one on the other side, whatever the share there, costs at most
    the distance (Kusner's relaxation), and exactly the distance if a side has one word. So the
    solver is used for few references, in order of that bound, until the bound is not below the best
    distance found.
    """
    mine = bags[caption]
    parts = [part for part in map(bags.__getitem__, references) if part.start < part.stop]
    if mine.start == mine.stop or not parts:
        return float("inf")
    from scipy.spatial.distance import cdist  # .15 s, which other metrics do not need

    starts = np.array([0, *accumulate(part.stop - part.start for part in parts)])
    theirs = np.concatenate([bags.words[part] for part in parts])
    shares = np.concatenate([bags.shares[part] for part in parts])
    costs = cdist(bags.table[bags.words[mine]], bags.table[theirs])
    there = bags.shares[mine] @ np.minimum.reduceat(costs, starts[:-1], axis=1)
    back = np.add.reduceat(shares * costs.min(axis=0), starts[:-1])
    bounds = np.maximum(there, back).tolist()
    best = float("inf")
    for place in sorted(range(len(parts)), key=bounds.__getitem__):
        if bounds[place] >= best:
            break
        between = costs[:, starts[place] : starts[place + 1]]
        if 1 in between.shape:
            best = bounds[place]
        else:
            best = min(best, _distance(bags.shares[mine], bags.shares[parts[place]], between))
    return best


def _distance(caption: Floats, reference: Floats, costs: Floats) -> float:
    """The cost of the optimal transport between two lists of shares."""
    _, distance, _, _, ended = _solver()(
        caption, reference, np.ascontiguousarray(costs), _STEPS, 1, None, None
    )
    if ended != _OPTIMAL:
        raise MetricFailed(f"the optimal transport of {costs.shape} words was not found")
    return float(distance)


@cache
def _solver() -> Callable[..., Any]:
    """POT's own solver, without the checks of ot.emd2, which take ten times as long."""
    os.environ["POT_BACKEND_DISABLE_PYTORCH"] = "1"  # otherwise it loads torch, which is not used
    from ot.lp.emd_wrap import emd_c

    return emd_c  # type: ignore[no-any-return]


STOP_WORDS_SIGNATURE = "nltk179"
_LIST = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself
she her hers herself it its itself they them their theirs themselves what which who whom
this that these those a an the

am is are was were be been being have has had having do does did doing can will should

and but if or because as until while of at by for with about against between into through
during before after above below to from up down in out on off over under

again further then once here there when where why how all any both each few more most other
some such no nor not only own same so than too very just now

s t d ll m o re ve y ma don ain aren couldn didn doesn hadn hasn haven isn mightn mustn needn
shan shouldn wasn weren won wouldn

you're you've you'll you'd she's it's that'll should've don't aren't couldn't didn't doesn't
hadn't hasn't haven't isn't mightn't mustn't needn't shan't shouldn't wasn't weren't won't
wouldn't
"""
STOP_WORDS = frozenset(_LIST.split())
