"""People's ratings of captions, with the images that they are of: a JSON object a line.

{"image": "123_abc.jpg", "candidate": "…", "references": ["…", …], "ratings": [3, 4, 4]}

as `prescore judge` takes them (or "rating": 3.5), and the image's name, by which its photo is
known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from service.contract import strict_json
from service.contract.errors import RequestRefused
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints


@dataclass(frozen=True)
class Rated:
    """Caption i of images[i]; ratings[i] has a number of each rater."""

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
        """Every rating for itself: the caption that it is of, and what it says."""
        captions = np.repeat(np.arange(len(self.ratings)), [len(each) for each in self.ratings])
        return captions, np.array([rating for each in self.ratings for rating in each])


def read(path: Path) -> Rated:
    """RequestRefused at the first wrong line."""
    try:
        lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestRefused(f"{path} cannot be read: {error}") from None
    rows = [_row(number, line) for number, line in enumerate(lines, 1)]
    if not rows:
        raise RequestRefused(f"{path.name} is empty: expected a line for each rated caption")
    return Rated(*(list(column) for column in zip(*rows, strict=True)))


def _row(number: int, line: str) -> tuple[str, str, tuple[str, ...], tuple[float, ...]]:
    try:
        value = strict_json.parse(line)
    except strict_json.NotJson as error:
        raise RequestRefused(f"line {number}: {error}") from None
    if not isinstance(value, dict):
        raise RequestRefused(f"line {number}: expected a JSON object, found {value!r:.60}")
    found = {**value, "ratings": value.get("ratings", [value.get("rating")])}
    for name, expected, fits in (
        ("image", "the name of the image", _is_text),
        ("candidate", "a caption", _is_text),
        ("references", "a list of captions", lambda each: _is_list(each, _is_text)),
        ("ratings", "a list of numbers", lambda each: _is_list(each, _is_number)),
    ):
        if not fits(found.get(name)):
            raise RequestRefused(
                f"line {number}, {name}: expected {expected}, found {found.get(name)!r:.60}"
            )
    ratings = tuple(map(float, found["ratings"]))
    return found["image"], found["candidate"], tuple(found["references"]), ratings


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_list(value: Any, fits: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(fits, value))
