"""A model's captions in the form that the service takes: {"image", "caption"}.

Read from COCO's results files and from what people have beside them: pycocoevalcap's dictionaries,
JSON Lines, CSV. Which of them a file is, its content says. What could be meant in two ways is
refused with its place.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from prescore.errors import InvalidArgument
from prescore.files import foreign
from prescore.files.reading import readable

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv"})
MOST_BYTES = 1 << 30
_NO_OUTPUTS = frozenset({"annotations", "images", "references", "sentences"})


def read(path: Path) -> list[dict[str, str]]:
    """Read captions from a file of any of these formats:

    [{"image" or "image_id": "1.jpg", "caption": "a dog"}, …]      COCO's results
    {"1.jpg": ["a dog"], …} or {"1.jpg": [{"caption": "a dog"}]}   pycocoevalcap's dictionaries
    {"image": "1.jpg", "caption": "a dog"}                         one on each line
    image,caption                                                  CSV, or tabs in a .tsv
    """
    text, found = _text(path)
    try:
        return normalized(_items(path, text, found))
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}, {error}") from None


def looks_like_captions(path: Path) -> bool:
    with readable(path):
        found = foreign.of_path(path)
    is_json = found is not None and found.is_text and found is not foreign.TEXT
    return is_json or path.suffix.lower() in SUFFIXES


def normalized(
    items: str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]],
) -> list[dict[str, str]]:
    """Captions as a list, by image, or in a file."""
    if isinstance(items, str | Path):
        return read(Path(items))
    if isinstance(items, Mapping):
        items = _dictionary(items)
    return [_item(f"item {number}", item) for number, item in enumerate(items, start=1)]


def _text(path: Path) -> tuple[str, foreign.Format | None]:
    with readable(path):
        found = foreign.of_path(path)
        if found is not None and not found.is_text:
            raise InvalidArgument(f"{path}: {foreign.refusal(found, foreign.CAPTIONS)}")
        if (size := path.stat().st_size) > MOST_BYTES:
            raise InvalidArgument(f"{path}: expected at most {MOST_BYTES} bytes, found {size}")
        try:
            return path.read_text(encoding="utf-8-sig"), found
        except UnicodeDecodeError as error:
            raise InvalidArgument(f"{path} is not text in UTF-8: {error}") from None


def _items(path: Path, text: str, found: foreign.Format | None) -> Iterable[Mapping[str, Any]]:
    if found in (None, foreign.TEXT) and path.suffix.lower() in (".csv", ".tsv"):
        return _table(text, "\t" if path.suffix.lower() == ".tsv" else ",")
    if path.suffix.lower() in (".jsonl", ".ndjson") or _has_lines(text):
        return _lines(text)
    read_ = _json(text, "the file")
    if isinstance(read_, dict):
        return _dictionary(read_)
    if not isinstance(read_, list):
        raise InvalidArgument(f"expected captions, found {_kind(read_)}")
    return read_


def _has_lines(text: str) -> bool:
    """Whether each line is an object of its own."""
    first, _, rest = text.lstrip().partition("\n")
    return first.rstrip().endswith("}") and rest.lstrip().startswith("{")


def _lines(text: str) -> Iterator[Mapping[str, Any]]:
    # Not splitlines: a caption may contain U+2028.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _item(f"line {number}", _json(line, f"line {number}"))


def _dictionary(found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Pycocoevalcap's dictionaries of results: a list of one caption for each image."""
    if words := sorted(_NO_OUTPUTS & found.keys()):
        raise InvalidArgument(
            f"expected captions by image, found an object with {words[0]!r}, as datasets have: "
            "COCO's annotations become a dataset with `prescore convert coco`, Karpathy's with "
            "`prescore convert karpathy`"
        )
    if "caption" in found and found.keys() & {"image", "image_id"}:
        yield found  # the only line of JSON Lines
        return
    for image, said in found.items():
        yield {"image": image, "caption": _only(image, said)}


def _only(image: str, said: Any) -> Any:
    place = f"image {image!r:.100}"
    if isinstance(said, list):
        if len(said) != 1:
            raise InvalidArgument(
                f"{place}: expected one caption, found {len(said)}; which one is the model's? "
                "(references belong to a dataset)"
            )
        said = said[0]
    if isinstance(said, Mapping):
        said = said.get("caption")
    if not isinstance(said, str):
        raise InvalidArgument(f'{place}: expected ["a caption"], found {_kind(said)}')
    return said


def _table(text: str, delimiter: str) -> Iterator[Mapping[str, Any]]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        heading = [name.strip() for name in next(rows, [])]
        image, caption = _columns(heading)
        for row in rows:
            if not row:
                continue
            if len(row) != len(heading):
                raise InvalidArgument(
                    f"line {rows.line_num}: expected {len(heading)} cells, found {len(row)}"
                )
            yield {"image": row[image], "caption": row[caption]}
    except csv.Error as error:
        raise InvalidArgument(f"line {rows.line_num}: not CSV: {error}") from None


def _columns(heading: list[str]) -> tuple[int, int]:
    """The places of the image's name and of the caption."""
    found = [name for name in ("image", "image_id", "caption") for _ in range(heading.count(name))]
    if sorted(found) not in (["caption", "image"], ["caption", "image_id"]):
        shown = ", ".join(map(repr, heading))
        raise InvalidArgument(
            "line 1: expected one column `caption` and one column `image` or `image_id`, "
            f"found {shown:.300}"
        )
    return heading.index(found[0]), heading.index("caption")


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except InvalidArgument as error:
        raise InvalidArgument(f"{place}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{place} is not JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgument(f"expected each name once, found {twice!r:.100} twice")
    return found


def _item(place: str, item: Any) -> dict[str, str]:
    if not isinstance(item, Mapping):
        raise InvalidArgument(f"{place}: expected an object, found {_kind(item)}")
    image = item.get("image_id") if item.get("image") is None else item["image"]
    if isinstance(image, bool) or not isinstance(image, str | int):
        expected = 'expected "image" or "image_id", a text or a whole number'
        raise InvalidArgument(f"{place}: {expected}, found {_kind(image)}")
    caption = item.get("caption")
    if not isinstance(caption, str):
        raise InvalidArgument(f'{place}: expected "caption", a text, found {_kind(caption)}')
    return {"image": str(image), "caption": caption}


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {value!r:.60}"
