"""A model's captions in the form that the service takes: {"image", "caption"}."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prescore.errors import InvalidArgument
from prescore.files import foreign
from prescore.files.reading import check_format


def read(path: Path) -> list[dict[str, str]]:
    """Read a JSON list of {"image" or "image_id", "caption"}, such as COCO's results."""
    check_format(path, foreign.CAPTIONS)
    try:
        items = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{path} is not JSON: {error}") from None
    if not isinstance(items, list):
        raise InvalidArgument(f"{path}: expected a list of captions, found {_kind(items)}")
    try:
        return normalized(items)
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}, {error}") from None


def normalized(items: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [_item(number, item) for number, item in enumerate(items)]


def _item(number: int, item: Any) -> dict[str, str]:
    if not isinstance(item, Mapping):
        raise InvalidArgument(f"item {number}: expected an object, found {_kind(item)}")
    image = item.get("image_id") if item.get("image") is None else item["image"]
    if isinstance(image, bool) or not isinstance(image, str | int):
        expected = 'expected "image" or "image_id", a text or a whole number'
        raise InvalidArgument(f"item {number}: {expected}, found {_kind(image)}")
    caption = item.get("caption")
    if not isinstance(caption, str):
        raise InvalidArgument(f'item {number}: expected "caption", a text, found {_kind(caption)}')
    return {"image": str(image), "caption": caption}


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {value!r:.60}"
