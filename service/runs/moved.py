"""On which images two systems differ most, by any metric that scores captions."""

import math
from collections.abc import Mapping, Sequence

from service.contract.api.captions import CaptionOut
from service.contract.api.comparisons import ImageCompared, MovedOut

MOST = 20


def most(a: Sequence[CaptionOut], b: Sequence[CaptionOut], names: Sequence[str]) -> list[MovedOut]:
    """The captions of the same images. A difference counts in units of its metric's usual one."""
    images = [_image(*both, names) for both in zip(a, b, strict=True)]
    usual = {name: _usual(name, images) for name in names}
    moves = [_move(image.scores, usual) for image in images]
    order = sorted(range(len(images)), key=lambda place: -moves[place])
    return [images[place] for place in order[:MOST] if moves[place] > 0]


def _image(a: CaptionOut, b: CaptionOut, names: Sequence[str]) -> MovedOut:
    both = [name for name in names if name in a.scores and name in b.scores]
    scores = {name: _compared(a.scores[name], b.scores[name]) for name in both}
    return MovedOut(image=a.image, a=a.caption, b=b.caption, scores=scores)


def _compared(a: float | None, b: float | None) -> ImageCompared:
    difference = None if a is None or b is None else a - b
    return ImageCompared(a=a, b=b, difference=difference)


def _usual(name: str, images: Sequence[MovedOut]) -> float:
    """The root of the mean square."""
    found = [image.scores[name].difference or 0.0 for image in images if name in image.scores]
    return math.hypot(*found) / math.sqrt(len(images))


def _move(scores: Mapping[str, ImageCompared], usual: Mapping[str, float]) -> float:
    moves = [
        abs(each.difference) / usual[name]
        for name, each in scores.items()
        if each.difference is not None and usual[name] > 0
    ]
    return max(moves, default=0.0)
