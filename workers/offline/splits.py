"""A split is written into a folder that may have other splits already."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import Item
from service.contract.wording import counted


@dataclass(frozen=True)
class Found:
    """What a folder has: images of other splits, and how many of the one that is written."""

    others: Sequence[Item]
    replaced: int

    def remark(self, split: str) -> str | None:
        if not self.replaced:
            return None
        others = dict.fromkeys(item.split for item in self.others)
        kept = f"; kept: {', '.join(map(repr, others))}" if others else ""
        return f"replaced the split {split!r}, which had {counted(self.replaced, 'image')}{kept}"


def found(folder: Path, split: str) -> Found:
    """Raise InvalidBundle where its captions.jsonl cannot be read, so that it is not lost."""
    path = folder / bundles.CAPTIONS
    if not path.exists():
        return Found((), 0)
    try:
        items = list(bundles.read_items(folder))
    except InvalidBundle as error:
        raise InvalidBundle(f"{path}, {error.detail}") from None
    others = [item for item in items if item.split != split]
    return Found(others, len(items) - len(others))


def joined(items: Iterable[Item], others: Sequence[Item]) -> Iterator[Item]:
    """Raise InvalidBundle for an image that another split has."""
    splits = {item.image: item.split for item in others}
    for item in items:
        if item.image in splits:
            raise InvalidBundle(
                f"image {item.image!r:.100} is in the split {splits[item.image]!r:.60} already"
            )
        yield item
    yield from others
