"""Validation of an uploaded bundle: lines, features' header, beginnings of pictures, amounts.

Only here are the numbers of splits, references, tokens and files limited: a stored bundle is read
whatever the limits are.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles, vocabularies
from service.contract.formats.bundles import BundleItem, FeaturesHeader, NameRegistry
from service.contract.formats.bundles import files as pictures
from service.contract.formats.bundles.features import check_region_counts
from service.contract.formats.bundles.files import FileOpener, open_bundle_files


@dataclass
class WordlessReferences:
    """References of a split that have no words, which can be scored but help nobody."""

    first: str  # the image
    references: int = 0
    images: int = 0


@dataclass(frozen=True)
class BundleFacts:
    """The numbers of images, references and their words by split, and of pictures where a split has
    some; the features' header, if there is one.
    """

    splits: dict[str, dict[str, int]]
    features: FeaturesHeader | None
    wordless: dict[str, WordlessReferences] = field(default_factory=dict)


def validate_bundle(path: Path, names: NameRegistry | None = None) -> BundleFacts:
    """Validate a bundle. Raises InvalidBundle with line and field."""
    with open_bundle_files(path, limits.MEMBERS) as (found, opened):
        with opened(bundles.CAPTIONS) as stream:
            items = bundles.parse_items(stream, names or bundles.NamesInMemory())
            splits, wordless = _counted(items, _BundlePictures(found, opened))
        if bundles.FEATURES not in found:
            return BundleFacts(splits, None, wordless)
        with opened(bundles.FEATURES) as stream:
            features = bundles.parse_features_header(stream)
            check_region_counts(stream, features)
    oddity = features.encoder.oddity()
    if oddity is not None:
        raise InvalidBundle(f"{bundles.FEATURES}: {oddity}")
    return BundleFacts(splits, features, wordless)


class _BundlePictures:
    """The files under images/, of which those that a line names are judged."""

    def __init__(self, found: Collection[str], opened: FileOpener) -> None:
        self._found = {name for name in found if name.startswith(pictures.PICTURES_FOLDER)}
        self._opened = opened

    def has(self, number: int, image: str) -> bool:
        name = pictures.PICTURES_FOLDER + image
        if name not in self._found:
            return False
        with self._opened(name) as stream:
            oddity = pictures.find_picture_fault(stream)
        if oddity is not None:
            raise InvalidBundle(f"line {number}, {name!r:.200}: {oddity}", pointer=f"/{number}")
        return True


def _counted(
    items: Iterator[BundleItem], pictures: _BundlePictures
) -> tuple[dict[str, dict[str, int]], dict[str, WordlessReferences]]:
    splits: dict[str, dict[str, int]] = {}
    wordless: dict[str, WordlessReferences] = {}
    for number, item in enumerate(items, start=1):
        if item.split not in splits and len(splits) == limits.SPLITS:
            raise bundles.wrong_field_error(
                number, "split", f"one of {limits.SPLITS} splits at most", item.split
            )
        _check(number, item)
        counts = splits.setdefault(item.split, {"images": 0, "references": 0, "words": 0})
        counts["images"] += 1
        counts["references"] += len(item.references)
        counts["words"] += sum(len(text.split()) for text in item.references)
        if pictures.has(number, item.image):
            counts["pictures"] = counts.get("pictures", 0) + 1
        if empty := sum(not text.strip() for text in item.references):
            odd = wordless.setdefault(item.split, WordlessReferences(item.image))
            odd.references += empty
            odd.images += 1
    return splits, wordless


def _check(number: int, item: BundleItem) -> None:
    if len(item.references) > limits.REFERENCES:
        expected = f"at most {limits.REFERENCES} captions of an image"
        raise bundles.wrong_field_error(number, "references", expected, len(item.references))
    for index, caption in enumerate(item.references):
        if vocabularies.has_too_many_tokens(caption):
            expected = f"at most {limits.TOKENS} words and signs"
            raise bundles.wrong_field_error(number, f"references/{index}", expected, caption)
