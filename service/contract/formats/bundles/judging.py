"""Judges a bundle that somebody uploads: every line, the features' header, and how much there is.

Only here are the numbers of splits, references, tokens and files limited: what was stored before
there were limits is still read.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles, words
from service.contract.formats.bundles import FeaturesHeader, Item, Names, plain_tar

_Open = Callable[[str], AbstractContextManager[IO[bytes]]]


@dataclass(frozen=True)
class Judged:
    """The numbers of images and references by split, and the features' header, if there is one."""

    splits: dict[str, dict[str, int]]
    features: FeaturesHeader | None


def judge(path: Path, names: Names | None = None) -> Judged:
    """Raises InvalidBundle with line and field."""
    with _files(path) as (found, opened):
        with opened(bundles.CAPTIONS) as stream:
            splits = _counted(bundles.items_in(stream, names or bundles.names_in_memory()))
        if bundles.FEATURES not in found:
            return Judged(splits, None)
        with opened(bundles.FEATURES) as stream:
            features = bundles.header_in(stream)
    oddity = features.encoder.oddity()
    if oddity is not None:
        raise InvalidBundle(f"{bundles.FEATURES}: {oddity}")
    return Judged(splits, features)


@contextmanager
def _files(path: Path) -> Iterator[tuple[set[str], _Open]]:
    """The names of a bundle's files, and what opens one; a tar's headers are read once."""
    if path.is_dir():
        yield set(bundles.member_names(path)), lambda name: bundles.open_member(path, name)
        return
    with bundles.open_tar(path) as archive:
        members = plain_tar.members(archive, limits.MEMBERS)

        def opened(name: str) -> IO[bytes]:
            if name not in members:
                raise InvalidBundle(f"expected a file {name!r:.200} in the bundle, found none")
            return plain_tar.open_member(archive, members[name])

        yield set(members), opened


def _counted(items: Iterator[Item]) -> dict[str, dict[str, int]]:
    splits: dict[str, dict[str, int]] = {}
    for number, item in enumerate(items, start=1):
        if item.split not in splits and len(splits) == limits.SPLITS:
            raise bundles.wrong(
                number, "split", f"one of {limits.SPLITS} splits at most", item.split
            )
        _check(number, item)
        counts = splits.setdefault(item.split, {"images": 0, "references": 0})
        counts["images"] += 1
        counts["references"] += len(item.references)
    return splits


def _check(number: int, item: Item) -> None:
    if len(item.references) > limits.REFERENCES:
        expected = f"at most {limits.REFERENCES} captions of an image"
        raise bundles.wrong(number, "references", expected, len(item.references))
    for index, caption in enumerate(item.references):
        if words.has_too_many(caption):
            expected = f"at most {limits.TOKENS} words and signs"
            raise bundles.wrong(number, f"references/{index}", expected, caption)
