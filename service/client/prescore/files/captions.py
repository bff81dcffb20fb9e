"""A model's captions in the form that the service takes: {"image", "caption"}.

Read from COCO's results files and from what people have beside them: pycocoevalcap's dictionaries,
JSON Lines, CSV. Which of them a file is, its content says. What could be meant in two ways is
refused with its place.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from prescore import foreign
from prescore.errors import InvalidArgument
from prescore.files import tables
from prescore.files.bodies import translate_read_errors
from prescore.names import suggest_name

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv"})
MOST_BYTES = 1 << 30
BEGINNING = 60  # characters that a message shows
EXAMPLE = '{"image": "1.jpg", "caption": "a dog"}'
COCO, LINES, TABLE = "COCO results", "JSON Lines", "CSV"
DICTIONARY = "captions by image"  # pycocoevalcap's
FORMATS = (COCO, LINES, TABLE, DICTIONARY)
_NAMED = 5  # fields that a message shows
_IMAGE = ("image", "image_id")
_FIELDS = frozenset({*_IMAGE, "caption"})
_NO_OUTPUTS = frozenset({"annotations", "images", "references", "sentences"})


class CaptionsFile(NamedTuple):
    """The captions in a file, and the name of its format."""

    format: str
    captions: list[dict[str, str]]


def read_captions(path: Path) -> list[dict[str, str]]:
    """Read captions from a file of any of these formats:

    [{"image" or "image_id": "1.jpg", "caption": "a dog"}, …]      COCO's results
    {"1.jpg": ["a dog"], …} or {"1.jpg": [{"caption": "a dog"}]}   pycocoevalcap's dictionaries
    {"image": "1.jpg", "caption": "a dog"}                         one on each line
    image,caption                                      CSV: with commas, semicolons or tabs
    """
    return read_captions_file(path).captions


def read_captions_file(path: Path) -> CaptionsFile:
    """Read captions from a file as `read_captions` does, with the format that the file has."""
    text = read_text(path)
    try:
        format_, items = _parse_items(path, text)
        return CaptionsFile(format_, normalize_captions(items))
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}, {error}") from None


def looks_like_captions(path: Path) -> bool:
    with translate_read_errors(path):
        format_ = foreign.of_path(path)
    return _may_be_captions(format_) or path.suffix.lower() in SUFFIXES


def normalize_captions(
    items: str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]],
) -> list[dict[str, str]]:
    """Captions as a list, by image, or in a file."""
    if isinstance(items, str | Path):
        return read_captions(Path(items))
    if isinstance(items, Mapping):
        items = _parse_dictionary(items)
    return [_check_item(f"item {number}", item) for number, item in enumerate(items, start=1)]


def _may_be_captions(format_: foreign.Format | None) -> bool:
    return format_ is not None and (format_.is_text or format_ is foreign.UTF16)


def read_text(path: Path) -> str:
    """The text of a file, of at most `MOST_BYTES`."""
    with translate_read_errors(path):
        format_ = foreign.of_path(path)
        if format_ is not None and not _may_be_captions(format_):
            raise InvalidArgument(f"{path}: {foreign.refusal(format_, foreign.CAPTIONS)}")
        if (size := path.stat().st_size) > MOST_BYTES:
            raise InvalidArgument(f"{path}: expected at most {MOST_BYTES} bytes, found {size}")
        try:
            return path.read_text(encoding="utf-16" if format_ is foreign.UTF16 else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidArgument(
                f"{path} is not text in {error.encoding.upper()}: byte {error.start + 1} is wrong: "
                "save it as UTF-8"
            ) from None


def _parse_items(path: Path, text: str) -> tuple[str, Iterable[Mapping[str, Any]]]:
    """The format of a file, and its items."""
    if not text.strip():
        raise InvalidArgument(_describe_text(text))
    suffix = path.suffix.lower()
    is_json = text.lstrip()[:1] in ("[", "{")
    if suffix in (".jsonl", ".ndjson") or (is_json and has_lines(text)):
        return LINES, _parse_lines(text)
    if not is_json and (suffix in (".csv", ".tsv") or tables.is_table(text)):
        return TABLE, tables.read_table(text)
    if not is_json and suffix != ".json":
        raise InvalidArgument(_describe_text(text))
    value = parse_json(text, "the file")
    if isinstance(value, dict):
        return LINES if _is_item(value) else DICTIONARY, _parse_dictionary(value)
    if not isinstance(value, list):
        raise InvalidArgument(f"expected captions, found {_describe_value(value)}")
    return COCO, value


def _describe_text(text: str) -> str:
    first = text.strip()[:BEGINNING].partition("\n")[0]
    found = f"a text that begins with {first.strip()!r}" if first else "an empty file"
    return (
        f"expected captions, each with the name of its image, as {EXAMPLE} on each line or a table "
        f"with the columns image,caption; found {found}"
    )


def has_lines(text: str) -> bool:
    """Check that each line is an object of its own."""
    first, _, rest = text.lstrip().partition("\n")
    return first.rstrip().endswith("}") and rest.lstrip().startswith("{")


def _parse_lines(text: str) -> Iterator[Mapping[str, Any]]:
    # Not splitlines: a caption may contain U+2028.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _check_item(f"line {number}", parse_json(line, f"line {number}"))


def _parse_dictionary(items: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Pycocoevalcap's dictionaries of results: a list of one caption for each image."""
    if words := sorted(_NO_OUTPUTS & items.keys()):
        raise InvalidArgument(
            f"expected captions by image, found an object with {words[0]!r}, as datasets have: "
            "COCO's annotations become a dataset with `prescore convert coco`, Karpathy's with "
            "`prescore convert karpathy`"
        )
    if _is_item(items):
        yield items  # the only line of JSON Lines
        return
    for image, caption in items.items():
        yield {"image": image, "caption": _unwrap_caption(image, caption)}


def _is_item(value: Mapping[str, Any]) -> bool:
    return "caption" in value and bool(value.keys() & {*_IMAGE})


def _unwrap_caption(image: str, value: Any) -> Any:
    place = f"image {image!r:.100}"
    if isinstance(value, list):
        if len(value) != 1:
            raise InvalidArgument(
                f"{place}: expected one caption, found {len(value)}; which one is the model's? "
                "(references become a dataset with `prescore convert references`)"
            )
        value = value[0]
    if isinstance(value, Mapping):
        wrong = _describe_found(value, value.get("caption"), "caption")
        value = value.get("caption")
    else:
        wrong = _describe_value(value)
    if not isinstance(value, str):
        raise InvalidArgument(f'{place}: expected ["a caption"], found {wrong}')
    return value


def parse_json(text: str, place: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_build_object)
    except InvalidArgument as error:
        raise InvalidArgument(f"{place}: {error}") from None
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"{place} is not JSON: {_describe_error(error)}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{place} is not JSON: {error}") from None


def _describe_error(error: json.JSONDecodeError) -> str:
    """Describe what is wrong, and its place. A text in one line is mostly a line of a file, which
    has another number there: its column is given.
    """
    rest = error.doc[error.pos :]
    if not rest.strip() or error.msg.startswith("Unterminated string"):
        return "it ends before it is whole: is it cut off?"
    line = f"line {error.lineno}, " if "\n" in error.doc.strip() else ""
    return f"{error.msg} at {line}column {error.colno}"


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise InvalidArgument(f"expected each name once, found {twice!r:.100} twice")
    return fields


def _check_item(place: str, item: Any) -> dict[str, str]:
    if not isinstance(item, Mapping):
        raise InvalidArgument(f"{place}: expected an object, found {_describe_value(item)}")
    image, identity = item.get("image"), item.get("image_id")
    if image is not None and identity is not None:
        raise InvalidArgument(f'{place}: expected "image" or "image_id", found both')
    image = identity if image is None else image
    if isinstance(image, bool) or not isinstance(image, str | int):
        expected = 'expected "image" or "image_id", a text or a whole number'
        raise InvalidArgument(f"{place}: {expected}, found {_describe_found(item, image, *_IMAGE)}")
    caption = item.get("caption")
    if not isinstance(caption, str):
        wrong = _describe_found(item, caption, "caption")
        raise InvalidArgument(f'{place}: expected "caption", a text, found {wrong}')
    return {"image": str(image), "caption": caption}


def _describe_found(item: Mapping[Any, Any], value: Any, *wanted: str) -> str:
    """A wrong value; where there is none, the fields that are there, with the one that was probably
    meant.
    """
    if not item:
        return "nothing"
    if value is not None or item.keys() & {*wanted}:
        return _describe_value(value)
    names = [repr(str(name)[:BEGINNING]) for name in list(item)[:_NAMED]]
    description = f"nothing; it has {', '.join(names)}" + ", …" * (len(item) > _NAMED)
    others = [str(name) for name in item if name not in _FIELDS][:_NAMED]
    questions = (suggest_name(name, wanted) for name in others)
    question = next(filter(None, questions), "")
    return f"{description}; {question}" if question else description


def _describe_value(value: Any) -> str:
    """A value in JSON's terms."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"the text {value!r:.60}"
    return f"{json.dumps(value, default=repr):.60}"


def read_judgements(path: Path) -> list[dict[str, Any]]:
    """Read people's judgements of captions, an object on each line, as `prescore judge` does; the
    service checks what is in them.
    """
    judgements = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = parse_json(line, f"line {number}")
        except InvalidArgument as error:
            raise InvalidArgument(f"{path}, {error}") from None
        if not isinstance(value, Mapping):
            raise InvalidArgument(
                f"{path}, line {number}: expected an object, found {str(value)[:60]!r}"
            )
        judgements.append(dict(value))
    if not judgements:
        raise InvalidArgument(f"{path}: expected a line for each judgement, found none")
    return judgements
