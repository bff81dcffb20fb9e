"""Training sets of NNEval: for every image, three captions by people and three by machines.

A person's caption is scored against the image's other references, a machine's against four drawn
at random, which are as many. If there are more than five references, five are drawn first. Every
draw depends only on the seed and the image's photo, not on what other images there are.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import RequestRefused

EACH = 3  # captions of people, and of machines, for each image
_REFERENCES = 5
_NAME = re.compile(r"(?:COCO_[a-z]+[0-9]{4}_)?([0-9]+)(?:_.*)?")


def identify_photo(image: str) -> str:
    """Flickr30k's `123.jpg` and Flickr8k's `123_abc.jpg` are one photo, `123`; so are COCO's
    `COCO_val2014_000000000042.jpg` and `000000000042.jpg`. Any other name is its own photo.
    """
    stem = PurePosixPath(image).stem
    found = _NAME.fullmatch(stem)
    return found[1] if found else stem


@dataclass(frozen=True)
class CaptionerOutputs:
    """A captioner's captions by image. `trained_on`: its training images; None if not stated."""

    name: str
    captions: Mapping[str, str]
    trained_on: frozenset[str] | None = None


@dataclass(frozen=True)
class NNEvalExamples:
    """Captions, their images and reference sets; `human`: whether a person wrote it."""

    images: Sequence[str]
    captions: Sequence[str]
    reference_sets: Sequence[tuple[str, ...]]
    human: NDArray[np.bool_]


def build_examples(
    people: Mapping[str, Sequence[str]],
    captioners: Sequence[CaptionerOutputs],
    seed: int,
) -> NNEvalExamples:
    """Examples from images' references; RequestRefused at photos that a captioner knew."""
    check_disjoint({"the images": people})
    for captioner in captioners:
        _check_unseen(captioner, people)
    rows: list[tuple[str, str, tuple[str, ...], bool]] = []
    for image, references in people.items():
        said = [each.captions[image] for each in captioners if image in each.captions]
        for what, found in (("references", references), ("captioners' captions", said)):
            if len(found) < EACH:
                raise RequestRefused(
                    f"expected at least {EACH} {what} of {image!r:.100}, found {len(found)}"
                )
        rng = np.random.default_rng(list(_digest(seed, identify_photo(image))))
        rows += ((image, *row) for row in _rows(references, said, rng))
    images, captions, reference_sets, human = zip(*rows, strict=True)
    return NNEvalExamples(images, captions, reference_sets, np.array(human))


def leave_out_photos(
    people: Mapping[str, Sequence[str]], others: Iterable[str]
) -> dict[str, Sequence[str]]:
    """The images that do not show a photo of the others."""
    photos = set(map(identify_photo, others))
    return {image: said for image, said in people.items() if identify_photo(image) not in photos}


def check_disjoint(sets: Mapping[str, Iterable[str]]) -> None:
    """Raise RequestRefused if a photo is in two of these sets, or twice in one, by any names."""
    by_photo = {what: _by_photo(what, images) for what, images in sets.items()}
    for (first, ours), (second, theirs) in combinations(by_photo.items(), 2):
        both = sorted(ours.keys() & theirs.keys())
        if both:
            raise RequestRefused(
                f"expected {first} and {second} to have no photo in common, found {len(both)}; "
                f"one is {both[0]!r:.100}, named {ours[both[0]]!r:.100} and "
                f"{theirs[both[0]]!r:.100}"
            )


def split_images(
    images: Iterable[str],
    shares: Sequence[int],
    seed: int,
    photo: Callable[[str], str] = identify_photo,
) -> list[frozenset[str]]:
    """All images in parts of these shares, in an order of photos that the seed decides."""
    ordered = sorted(set(images), key=lambda image: (_digest(seed, photo(image)), image))
    ends = [len(ordered) * share // sum(shares) for share in accumulate(shares)]
    return [frozenset(ordered[start:end]) for start, end in pairwise([0, *ends])]


def _by_photo(what: str, images: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for image in dict.fromkeys(images):
        other = found.setdefault(identify_photo(image), image)
        if other != image:
            raise RequestRefused(
                f"expected every photo once in {what}, found {other!r:.100} and {image!r:.100}"
            )
    return found


def _check_unseen(captioner: CaptionerOutputs, images: Iterable[str]) -> None:
    known = set(map(identify_photo, captioner.trained_on or ()))
    scored = [image for image in images if image in captioner.captions]
    seen = [image for image in scored if identify_photo(image) in known]
    if seen:
        raise RequestRefused(
            f"expected captions of photos that {captioner.name!r:.100} was not trained on, found "
            f"{len(seen)} that it was; one is {seen[0]!r:.100}"
        )


def _rows(
    references: Sequence[str], said: Sequence[str], rng: np.random.Generator
) -> Iterable[tuple[str, tuple[str, ...], bool]]:
    kept = [references[place] for place in _draw(rng, len(references), _REFERENCES)]
    for place in _draw(rng, len(kept), EACH):
        yield kept[place], tuple(kept[:place] + kept[place + 1 :]), True
    for place in _draw(rng, len(said), EACH):
        against = _draw(rng, len(kept), len(kept) - 1)
        yield said[place], tuple(kept[each] for each in sorted(against)), False


def _draw(rng: np.random.Generator, of: int, many: int) -> list[int]:
    drawn: list[int] = rng.permutation(of)[:many].tolist()
    return drawn


def _digest(seed: int, photo: str) -> bytes:
    return hashlib.sha256(f"{seed} {photo}".encode()).digest()
