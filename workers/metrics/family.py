"""Families of caption metrics: a family measures captions, then sums up."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricUnavailable
from service.contract.metrics.families import Need
from workers.metrics import ngrams
from workers.metrics.frequencies import DocumentFrequencies
from workers.metrics.java.jvm import Jvm
from workers.metrics.ngrams import CaptionNumbers, Ints, NgramOccurrences, WordNumbers
from workers.metrics.references import PreparedReferences
from workers.metrics.tokens import Tokenizer
from workers.progress import Progress, ignore_progress

Floats = NDArray[np.float64]
Statistics = dict[str, Floats]  # first axis: captions; corpus scores need only sums over it

_BLOCK = 500  # captions between two reports of progress: a third of a second at most


@dataclass(frozen=True, eq=False)
class IdfImages:
    """Document frequencies of chosen images: `images` says for each image whether it counts. Images
    of another set can be among the references; no caption answers them.
    """

    images: NDArray[np.bool_]


# Where document frequencies come from.
Idf = Literal["dataset", "subset"] | IdfImages | DocumentFrequencies

TOOLS: Mapping[Need, str] = {"tuples": "parse", "vectors": "vectors", "encoder": "encoder"}


@dataclass(frozen=True)
class FamilyScores:
    """Scores as fractions (BLEU .33, CIDEr-D .95); the arrays' first axis is the captions."""

    family: str
    corpus: dict[str, float]
    captions: dict[str, Floats]
    statistics: Statistics
    signatures: dict[str, str]


def _refuse_others(family: str, task: "ScoringInput") -> FamilyScores:  # noqa: ARG001  a ScoreFamily
    raise MetricUnavailable(f"expected a way to score by {family}, found none")


@dataclass(frozen=True)
class ScoringInput:
    """Captions, and `rows`, the images that they answer (places in `prepared`, the references).

    Captions are tokens joined by blanks, as the references are. If `tokenizer` is None, they are
    texts as people wrote them. `tools` are what a family needs according to its row, by the names
    that `Toolbox.bring` gives them: parse, vectors, encoder, model, …; `people` and `texts` among
    them are references and captions as they were written. `own` are the parameters of its task.
    `others` scores the same captions by another family.
    """

    captions: Sequence[str]
    rows: Ints
    prepared: PreparedReferences | None
    jvm: Jvm
    idf: Idf = "dataset"
    progress: Progress = ignore_progress
    tokenizer: Tokenizer | None = None
    tools: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)
    others: "ScoreFamily" = _refuse_others

    @property
    def references(self) -> PreparedReferences:
        if self.prepared is None:
            raise MetricUnavailable("expected references, found none")
        return self.prepared

    @property
    def people(self) -> Sequence[Sequence[str]]:
        """References as people wrote them; where there are none, as tokens joined by blanks."""
        found: Sequence[Sequence[str]] | None = self.tools.get("people")
        return self.references.captions if found is None else found

    @property
    def texts(self) -> Sequence[str]:
        """Captions as they were written; where there are none, as tokens joined by blanks."""
        found: Sequence[str] | None = self.tools.get("texts")
        return self.captions if found is None else found

    def require_tool(self, name: str, complaint: str) -> Any:
        """Return a tool. Raises MetricUnavailable with this complaint if it was not brought."""
        found = self.tools.get(name)
        if found is None:
            raise MetricUnavailable(complaint)
        return found

    def references_of(self, place: int) -> Sequence[str]:
        return self.references.captions[self.rows[place]]

    @cached_property
    def encoded(self) -> CaptionNumbers:
        """The captions by the numbers of the references' words; new words get the next numbers."""
        return ngrams.number_captions(self.captions, self._numbers)

    @property
    def words(self) -> Sequence[str]:
        """All words in the order of their numbers, with those that only captions have."""
        assert self.encoded
        return list(self._numbers)

    @cached_property
    def _numbers(self) -> WordNumbers:
        return WordNumbers(self.references.numbers)

    def blocks(self) -> Iterator[slice]:
        total = len(self.captions)
        for start in range(0, total, _BLOCK):
            block = slice(start, min(start + _BLOCK, total))
            yield block
            self.progress(block.stop, total)

    def places(self) -> Iterator[int]:
        """The places of all captions; progress is reported block by block."""
        for block in self.blocks():
            yield from range(block.start, block.stop)

    def occurrences(self, block: slice) -> Iterator[NgramOccurrences]:
        """The n-grams of a block's captions, length by length; the first caption is number 0."""
        counts = self.encoded.word_counts
        start, stop = counts[: block.start].sum(), counts[: block.stop].sum()
        number = ngrams.number_by_levels(self.references.levels)
        return ngrams.count_ngrams(self.encoded.words[start:stop], counts[block], number)

    def pairs(self, block: slice) -> tuple[Ints, Ints]:
        """All pairs of a caption and a reference: where each caption's begin; the references."""
        first, last = (self.references.offsets[self.rows[block] + end] for end in (0, 1))
        return ngrams.compute_starts(last - first), ngrams.spread_runs(first, last - first)


# Scores a task by the family of that name.
ScoreFamily = Callable[[str, ScoringInput], FamilyScores]


@dataclass(frozen=True)
class FamilyMeasures:
    """Measures of a family. `captions`: every caption's own scores, by metric. `statistics`: what
    the corpus score is computed from, for all captions or any choice of them. `corpus`: scores of
    all captions together that no sum gives.
    """

    captions: dict[str, Floats]
    statistics: Statistics
    corpus: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of_scores(cls, name: str, scores: Floats) -> "FamilyMeasures":
        """Measures of a metric whose corpus score is the mean of the captions' scores."""
        return cls({name: scores}, {name: scores})


def average_statistics(statistics: Statistics) -> dict[str, float]:
    """The mean over captions of each statistic."""
    return {name: float(np.mean(values)) for name, values in statistics.items()}


@dataclass(frozen=True)
class FamilyFunctions:
    """Functions of a family: captions are measured, then their statistics are summed up.

    `corpus` sums up, by default to means; None: the scores of all captions have no parts. A
    signature says what captions were scored against (`against`) and how (`recipe`). `complete`
    completes the task before all of that. `join` computes the scores from those of the families
    that this one is made of, and also returns the recipe. `expect` tells Java what will be asked
    for soon.
    """

    measure: Callable[[ScoringInput], FamilyMeasures]
    recipe: Callable[[ScoringInput], str]
    corpus: Callable[[Statistics], dict[str, float]] | None = average_statistics
    against: Callable[[ScoringInput], str] = lambda task: task.references.signature
    complete: Callable[[ScoringInput], ScoringInput] = lambda task: task
    join: Callable[[Mapping[str, FamilyScores]], tuple[FamilyMeasures, str]] | None = None
    expect: Callable[[Jvm], None] | None = None
