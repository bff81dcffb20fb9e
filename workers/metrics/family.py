"""What the families of post-gen metrics share: each measures captions, then sums up."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import Canceled
from workers.metrics import ngrams
from workers.metrics.frequencies import Frequencies
from workers.metrics.java.jvm import Jvm
from workers.metrics.ngrams import Encoded, Ints, Numbers, Occurrences
from workers.metrics.references import References
from workers.metrics.scenes.scene_graphs import Parse
from workers.metrics.vectors.word_vectors import WordVectors
from workers.progress import Progress, Stop, never, silent

Floats = NDArray[np.float64]
Statistics = dict[str, Floats]  # the first axis is that of the captions; sums over it suffice

_BLOCK = 500  # captions between two questions whether to stop: a third of a second at most


@dataclass(frozen=True, eq=False)
class Counted:
    """`images` says of each whether it counts in document frequencies: those of another set stand
    among the references without being answered.
    """

    images: NDArray[np.bool_]


Idf = Literal["dataset", "subset"] | Counted | Frequencies  # where document frequencies come from


@dataclass(frozen=True)
class Task:
    """Tokenised captions and the images that they answer (places in `references`). `parse` gives
    SPICE's tuples and `vectors` words', where there are any to be had.
    """

    captions: Sequence[str]
    rows: Ints
    references: References
    jvm: Jvm
    idf: Idf = "dataset"
    stop: Stop = never
    progress: Progress = silent
    parse: Parse | None = None
    vectors: WordVectors | None = None

    def references_of(self, place: int) -> Sequence[str]:
        return self.references.captions[self.rows[place]]

    @cached_property
    def encoded(self) -> Encoded:
        """The captions in the references' words, and numbers after those for their own."""
        return ngrams.encode(self.captions, self._numbers)

    @property
    def words(self) -> Sequence[str]:
        """By number, the captions' own too."""
        assert self.encoded
        return list(self._numbers)

    @cached_property
    def _numbers(self) -> Numbers:
        return Numbers(self.references.numbers)

    def blocks(self) -> Iterator[slice]:
        total = len(self.captions)
        for start in range(0, total, _BLOCK):
            if self.stop():
                raise Canceled(f"stopped after {start} of {total} captions")
            block = slice(start, min(start + _BLOCK, total))
            yield block
            self.progress(block.stop, total)

    def occurrences(self, block: slice) -> Iterator[Occurrences]:
        """The n-grams of a block's captions, length by length; its first caption is number 0."""
        counts = self.encoded.word_counts
        start, stop = counts[: block.start].sum(), counts[: block.stop].sum()
        number = ngrams.number_by(self.references.levels)
        return ngrams.count(self.encoded.words[start:stop], counts[block], number)

    def pairs(self, block: slice) -> tuple[Ints, Ints]:
        """Where each caption's references begin in the list of all pairs, and whose they are."""
        first, last = (self.references.offsets[self.rows[block] + end] for end in (0, 1))
        return ngrams.starts(last - first), ngrams.spread(first, last - first)


@dataclass(frozen=True)
class Measured:
    """`captions`: every caption's own scores, by metric. `statistics`: what the corpus score is
    computed from, for all captions or any choice of them.
    """

    captions: dict[str, Floats]
    statistics: Statistics


@dataclass(frozen=True)
class Family:
    """`recipe` is what a signature says beyond references, tokens and version."""

    measure: Callable[[Task], Measured]
    corpus: Callable[[Statistics], dict[str, float]]
    recipe: Callable[[Task], str]
