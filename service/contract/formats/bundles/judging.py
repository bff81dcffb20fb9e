"""Judges a bundle that somebody uploads: every line, the features' header, how pictures begin, and
how much there is.

Only here are the numbers of splits, references, tokens and files limited: a stored bundle is read
whatever the limits are.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles, words
from service.contract.formats.bundles import FeaturesHeader, Item, Names, pictures
from service.contract.formats.bundles.features import check_counts
from service.contract.formats.bundles.files import Open, files


@dataclass
class Wordless:
    """References of a split that have no words, which can be scored but help nobody."""

    first: str  # the image
    references: int = 0
    images: int = 0


@dataclass(frozen=True)
class Judged:
    """The numbers of images and references by split, and of pictures where a split has some; the
    features' header, if there is one.
    """

    splits: dict[str, dict[str, int]]
    features: FeaturesHeader | None
    wordless: dict[str, Wordless] = field(default_factory=dict)


def judge(path: Path, names: Names | None = None) -> Judged:
    """Raises InvalidBundle with line and field."""
    with files(path, limits.MEMBERS) as (found, opened):
        with opened(bundles.CAPTIONS) as stream:
            items = bundles.items_in(stream, names or bundles.names_in_memory())
            splits, wordless = _counted(items, _Pictures(found, opened))
        if bundles.FEATURES not in found:
            return Judged(splits, None, wordless)
        with opened(bundles.FEATURES) as stream:
            features = bundles.header_in(stream)
            check_counts(stream, features)
    oddity = features.encoder.oddity()
    if oddity is not None:
        raise InvalidBundle(f"{bundles.FEATURES}: {oddity}")
    return Judged(splits, features, wordless)


class _Pictures:
    """The files under images/, of which those that a line names are judged."""

    def __init__(self, found: Collection[str], opened: Open) -> None:
        self._found = {name for name in found if name.startswith(pictures.FOLDER)}
        self._opened = opened

    def has(self, number: int, image: str) -> bool:
        name = pictures.FOLDER + image
        if name not in self._found:
            return False
        with self._opened(name) as stream:
            oddity = pictures.oddity(stream)
        if oddity is not None:
            raise InvalidBundle(f"line {number}, {name!r:.200}: {oddity}", pointer=f"/{number}")
        return True


def _counted(
    items: Iterator[Item], pictures: _Pictures
) -> tuple[dict[str, dict[str, int]], dict[str, Wordless]]:
    splits: dict[str, dict[str, int]] = {}
    wordless: dict[str, Wordless] = {}
    for number, item in enumerate(items, start=1):
        if item.split not in splits and len(splits) == limits.SPLITS:
            raise bundles.wrong(
                number, "split", f"one of {limits.SPLITS} splits at most", item.split
            )
        _check(number, item)
        counts = splits.setdefault(item.split, {"images": 0, "references": 0})
        counts["images"] += 1
        counts["references"] += len(item.references)
        if pictures.has(number, item.image):
            counts["pictures"] = counts.get("pictures", 0) + 1
        if empty := sum(not text.strip() for text in item.references):
            odd = wordless.setdefault(item.split, Wordless(item.image))
            odd.references += empty
            odd.images += 1
    return splits, wordless


def _check(number: int, item: Item) -> None:
    if len(item.references) > limits.REFERENCES:
        expected = f"at most {limits.REFERENCES} captions of an image"
        raise bundles.wrong(number, "references", expected, len(item.references))
    for index, caption in enumerate(item.references):
        if words.has_too_many(caption):
            expected = f"at most {limits.TOKENS} words and signs"
            raise bundles.wrong(number, f"references/{index}", expected, caption)
