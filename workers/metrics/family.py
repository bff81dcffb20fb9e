"""What the families of post-gen metrics share: each measures captions, then sums up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import Canceled
from workers.control import Progress, Stop, never, silent
from workers.metrics.jvm import Jvm
from workers.metrics.references import References

Floats = NDArray[np.float64]
Statistics = dict[str, Floats]  # the first axis is that of the captions; sums over it suffice

_BLOCK = 500  # captions between two questions whether to stop: a third of a second at most


@dataclass(frozen=True)
class Task:
    """Tokenised captions and the images that they answer (places in `references`)."""

    captions: Sequence[str]
    rows: Sequence[int]
    references: References
    jvm: Jvm
    stop: Stop = never
    progress: Progress = silent

    def references_of(self, place: int) -> Sequence[str]:
        return self.references.captions[self.rows[place]]

    def blocks(self, largest: int = _BLOCK) -> Iterator[range]:
        total, size = len(self.captions), min(_BLOCK, largest)
        for start in range(0, total, size):
            if self.stop():
                raise Canceled(f"stopped after {start} of {total} captions")
            block = range(start, min(start + size, total))
            yield block
            self.progress(block.stop, total)


@dataclass(frozen=True)
class Measured:
    """`captions`: every caption's own scores, by metric. `statistics`: what the corpus score is
    computed from, for all captions or any choice of them.
    """

    captions: dict[str, Floats]
    statistics: Statistics
