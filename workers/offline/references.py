"""References in the formats that people have: pycocoevalcap's dictionary, a list, a table."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prescore import InvalidArgument
from prescore.files import captions, tables
from service.contract.errors import InvalidBundle, RequestRefused
from service.contract.formats import strict_json
from service.contract.formats.bundles import BundleItem

EXAMPLE = '{"1.jpg": ["a dog", "a brown dog"]}'
_PUBLISHED = {"annotations": "coco", "images": "karpathy"}  # keys of datasets -> their commands
_REFERENCES = ("references", "captions", "caption")


def read_references_file(path: Path, split: str) -> Iterator[BundleItem]:
    """Read a file of any of these formats; what is said of an image in several places is joined.

    {"1.jpg": ["a dog", "a brown dog"], …}  or  {"1.jpg": [{"caption": "a dog"}, …], …}
    [{"image" or "image_id": "1.jpg", "references" or "captions": ["a dog", …]}, …]
    [{"image" or "image_id": "1.jpg", "caption": "a dog"}, …]           each reference by itself
    these objects one on each line, or a table with the columns image,caption
    """
    found: dict[str, list[str]] = {}
    try:
        for image, texts in _all(captions.read_text(path)):
            found.setdefault(image, []).extend(texts)
    except (InvalidArgument, RequestRefused) as error:
        said = str(error)
        named = said.startswith((f"{path}: ", f"{path} "))
        raise InvalidBundle(said if named else f"{path}: {said}") from None
    for image, texts in found.items():
        yield BundleItem(image, split, tuple(texts))


def list_unused_columns(path: Path) -> str:
    """The columns of a table that `read` leaves out, to be shown; none of other files."""
    text = captions.read_text(path)
    return tables.describe_unused(text) if _is_table(text) else ""


def _is_table(text: str) -> bool:
    return not captions.has_lines(text) and text.lstrip()[:1] not in ("[", "{")


def _all(text: str) -> Iterator[tuple[str, list[str]]]:
    if not text.strip():
        raise InvalidArgument(f"expected references such as {EXAMPLE}, found an empty file")
    if captions.has_lines(text):
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield _item(f"line {number}", _json(line, f"line {number}"))
        return
    if _is_table(text):
        for row in tables.read_table(text):
            yield row["image"], [row["caption"]]
        return
    whole = _json(text, "the file")
    if isinstance(whole, dict) and not (whole.keys() & {*tables.IMAGES}):
        yield from _dictionary(whole)
        return
    if not isinstance(whole, list):
        whole = [whole]  # the only line of JSON Lines
    for number, item in enumerate(whole, start=1):
        yield _item(f"item {number}", item)


def _dictionary(found: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    command = next((each for key, each in _PUBLISHED.items() if key in found), None)
    if command is not None:
        raise InvalidBundle(
            f"expected references by image, as {EXAMPLE}, found a dataset as it is published: "
            f"`prescore convert {command}` reads it"
        )
    for image, texts in found.items():
        yield image, _texts(f"image {image!r:.100}", texts)


def _item(place: str, item: Any) -> tuple[str, list[str]]:
    if not isinstance(item, dict):
        raise InvalidBundle(f"{place}: expected an object, found {item!r:.60}")
    names = [item[name] for name in tables.IMAGES if item.get(name) is not None]
    if len(names) != 1 or type(names[0]) not in (int, str):
        raise InvalidBundle(
            f'{place}: expected one of "image" and "image_id", a text or a whole number, found '
            f"{' and '.join(f'{name!r:.60}' for name in names) or 'none'}"
        )
    texts = [item[name] for name in _REFERENCES if item.get(name) is not None]
    if len(texts) != 1:
        raise InvalidBundle(
            f'{place}: expected "references", a list of texts, found {len(texts) or "no"} '
            f"fields of {', '.join(_REFERENCES)}"
        )
    return str(names[0]), _texts(place, texts[0])


def _texts(place: str, found: Any) -> list[str]:
    several = found if isinstance(found, list) else [found]
    texts: list[str] = []
    for each in several:
        text = each.get("caption") if isinstance(each, dict) else each
        if not isinstance(text, str):
            raise InvalidBundle(f'{place}: expected ["a dog", …], found {each!r:.60}')
        texts.append(text)
    return texts


def _json(text: str, place: str) -> Any:
    try:
        return strict_json.parse_json(text)
    except strict_json.NotJson as error:
        raise InvalidBundle(f"{place}: {error}") from None
