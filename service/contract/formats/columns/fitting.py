"""Whether columns are of a split: the same images with as many references, in order."""

from collections.abc import Iterable
from pathlib import Path

from service.contract.formats.bundles import Item
from service.contract.formats.columns import header as headers
from service.contract.formats.columns import values
from service.contract.formats.words import TOKENIZERS
from service.contract.wording import counted


def difference(path: Path, items: Iterable[Item], images: int) -> str | None:
    """What is different at the first image that differs; None where nothing is. With a tokenizer
    that Prescore knows, also the numbers of tokens are compared.
    """
    header = headers.read(path)
    found = values.offsets(path, header)
    split = TOKENIZERS.get(header.tokenizer)
    for place, (name, item) in enumerate(zip(header.images, items, strict=False)):
        if name not in (item.image, item.id):
            return _at(place, f"the split has {item.image!r:.100}, the columns {name!r:.100}")
        first, last = found.images[place], found.images[place + 1]
        if last - first != len(item.references):
            counts = f"{counted(len(item.references), 'reference')}, the columns {last - first}"
            return _at(place, f"{item.image!r:.100} has {counts}")
        for number, text in enumerate(item.references if split else ()):
            has = found.words_of(first + number)
            expected = len(split(text)) + 1 if split else 0
            if has != expected:
                return _at(
                    place,
                    f"references[{number}] of {item.image!r:.100} has "
                    f"{counted(expected, 'token')} by the "
                    f"tokenizer {header.tokenizer}, END included; the columns have {has}",
                )
    if len(header.images) != images:
        return f"the split has {counted(images, 'image')}, the columns {len(header.images)}"
    return None


def _at(place: int, text: str) -> str:
    return f"images[{place}]: {text}"
