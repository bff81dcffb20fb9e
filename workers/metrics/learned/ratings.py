"""People's ratings of captions as `prescore judge` reads them, with the images that they are of."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workers.files import judgements
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints


@dataclass(frozen=True)
class Rated:
    """Rated captions. Caption i is of images[i]; ratings[i] has a number from each rater."""

    images: Sequence[str]
    captions: Sequence[str]
    reference_sets: Sequence[tuple[str, ...]]
    ratings: Sequence[tuple[float, ...]]

    def of(self, images: frozenset[str]) -> "Rated":
        kept = [place for place, image in enumerate(self.images) if image in images]
        return Rated(
            [self.images[place] for place in kept],
            [self.captions[place] for place in kept],
            [self.reference_sets[place] for place in kept],
            [self.ratings[place] for place in kept],
        )

    @property
    def observations(self) -> tuple[Ints, Floats]:
        """Every single rating: the caption that it is of, and its number."""
        captions = np.repeat(np.arange(len(self.ratings)), [len(each) for each in self.ratings])
        return captions, np.array([rating for each in self.ratings for rating in each])


def read(path: Path) -> Rated:
    """Read ratings. Raises RequestRefused at the first line that is not a rated caption of a named
    image.
    """
    found = judgements.read_images(path)
    return Rated(
        [image for image, _ in found],
        [each.candidate for _, each in found],
        [each.references for _, each in found],
        [each.ratings for _, each in found],
    )
