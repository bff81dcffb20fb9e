"""People's judgements as JSON lines: rated captions, and pairs of captions of which one is
preferred. Errors name line and field.
"""

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn

from service.contract import limits
from service.contract.errors import RequestRefused
from service.contract.formats import strict_json
from workers import files

# Names of summaries over pairs; no category may have them.
ALL, AVERAGE, WORST = ("all", "average", "worst")
_BLOCK = 1 << 16  # bytes
_RATED, _PAIR = {"candidate", "rating", "ratings"}, {"a", "b", "preferred"}


@dataclass(frozen=True)
class RatedCaption:
    """A rated caption; `image`: the name of its image, `system`: its author, if they are known."""

    candidate: str
    references: tuple[str, ...]
    ratings: tuple[float, ...]
    image: str | None = None
    system: str | None = None


@dataclass(frozen=True)
class JudgedPair:
    """A pair of captions; with `category` None it counts only among all pairs."""

    references: tuple[str, ...]
    a: str
    b: str
    preferred: Literal["a", "b"]
    category: str | None = None
    image: str | None = None


@dataclass(frozen=True)
class Judgements:
    """`rated_lines` and `pair_lines`: the numbers of their lines in a file, from 1."""

    rated: Sequence[RatedCaption] = ()
    pairs: Sequence[JudgedPair] = ()
    rated_lines: Sequence[int] = ()
    pair_lines: Sequence[int] = ()


def read_judgements(path: Path) -> Judgements:
    """Read a file, which may have both kinds; RequestRefused at the first wrong line."""
    found: dict[type, list[Any]] = {RatedCaption: [], JudgedPair: []}
    lines: dict[type, list[int]] = {RatedCaption: [], JudgedPair: []}
    with files.name_file_in_errors(path):
        for number, judgement in _numbered(path):
            found[type(judgement)].append(judgement)
            lines[type(judgement)].append(number)
    return Judgements(
        found[RatedCaption], found[JudgedPair], lines[RatedCaption], lines[JudgedPair]
    )


def read_image_ratings(path: Path) -> list[RatedCaption]:
    """Read rated captions that name their images; RequestRefused at any other line."""
    found = []
    with files.name_file_in_errors(path):
        for number, judgement in _numbered(path):
            if isinstance(judgement, JudgedPair):
                raise RequestRefused(f"line {number}: expected a rated caption, found a pair")
            if judgement.image is None:
                _refuse(number, "image", "the name of the image as a text", {})
            found.append(judgement)
    return found


def write_pairs(path: Path, pairs: Iterable[JudgedPair], **notes: Any) -> None:
    """Write pairs; `notes` are added to every line, for people: `read` ignores unknown fields."""
    lines = (json.dumps(asdict(pair) | notes, ensure_ascii=False) for pair in pairs)
    files.write_atomically(
        path, lambda partial: partial.write_text("\n".join(lines) + "\n", "utf-8")
    )


def _numbered(path: Path) -> Iterator[tuple[int, RatedCaption | JudgedPair]]:
    if not path.is_file():
        raise RequestRefused(f"expected a file of judgements, found nothing at {path}")
    number = 0
    with path.open("rb") as stream:
        if _is_blank(stream):
            lines = "has empty lines only" if stream.tell() else "is empty"
            raise RequestRefused(f"{path.name} {lines}: expected a line for each judgement")
        stream.seek(0)
        for number, line in enumerate(iter(lambda: stream.readline(limits.LINE_BYTES + 1), b""), 1):
            yield number, _judgement(number, _object(number, line))


def _is_blank(stream: BinaryIO) -> bool:
    """True if only blanks stand in a file, perhaps behind a byte-order mark."""
    text = stream.read(_BLOCK).removeprefix(codecs.BOM_UTF8)
    while not text.strip():
        if not (text := stream.read(_BLOCK)):
            return True
    return False


def _object(number: int, line: bytes) -> Mapping[str, Any]:
    """A byte-order mark, as Windows programs write it, is no part of the first line."""
    if len(line) > limits.LINE_BYTES:
        raise RequestRefused(f"line {number}: longer than {limits.LINE_BYTES} bytes")
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
        if line.lstrip().startswith(b"["):
            raise RequestRefused(
                "line 1: expected a JSON object, found the beginning of an array: write each of "
                "its objects on a line of its own, as `jq -c '.[]' FILE` does"
            )
    return strict_json.parse_json_line(number, line, RequestRefused)


def _judgement(number: int, value: Mapping[str, Any]) -> RatedCaption | JudgedPair:
    rated, pair = (sorted(names & value.keys()) for names in (_RATED, _PAIR))
    if bool(rated) == bool(pair):
        found = ", ".join(value) or "no field at all"
        raise RequestRefused(
            f"line {number}: expected candidate and rating or ratings (a rated line), or else "
            f"a, b and preferred (a pair line), found {found:.100}",
            pointer=f"/{number}",
        )
    references = value.get("references")
    if not isinstance(references, list) or not references:
        _refuse(number, "references", "a list of at least one caption", value)
    people = tuple(
        _caption(number, f"references/{index}", caption) for index, caption in enumerate(references)
    )
    if rated:
        candidate = _caption(number, "candidate", value.get("candidate"))
        image, system = (_name(value.get(field)) for field in ("image", "system"))
        return RatedCaption(candidate, people, _ratings(number, value), image, system)
    return _pair(number, people, value)


def _pair(number: int, references: tuple[str, ...], value: Mapping[str, Any]) -> JudgedPair:
    a, b = (_caption(number, name, value.get(name)) for name in ("a", "b"))
    preferred, category = value.get("preferred"), value.get("category")
    if preferred not in ("a", "b"):
        expected = '"a" or "b" (lines where people preferred neither are left out of the file)'
        _refuse(number, "preferred", expected, value)
    if category is not None and not _is_name(category):
        _refuse(number, "category", f"a name other than {ALL}, {AVERAGE} and {WORST}", value)
    return JudgedPair(references, a, b, preferred, category, _name(value.get("image")))


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _is_name(value: Any) -> bool:
    """True if a category's name can be the heading of a column."""
    fits = isinstance(value, str) and 0 < len(value) <= limits.IMAGE and value.isprintable()
    return fits and value not in (ALL, AVERAGE, WORST)


def _ratings(number: int, value: Mapping[str, Any]) -> tuple[float, ...]:
    if "ratings" not in value:
        if "rating" not in value:
            expected = "a number, or a list of them in `ratings` (`prescore score` needs none)"
            _refuse(number, "rating", expected, value)
        if not _is_number(value["rating"]):
            _refuse(number, "rating", "a number", value)
        return (float(value["rating"]),)
    if "rating" in value:
        _refuse(number, "ratings", "either rating or ratings, not both", value)
    ratings = value["ratings"]
    if not isinstance(ratings, list) or not ratings:
        _refuse(number, "ratings", "a list of at least one number", value)
    for index, rating in enumerate(ratings):
        if not _is_number(rating):
            _refuse(number, f"ratings/{index}", "a number", {f"ratings/{index}": rating})
    return tuple(map(float, ratings))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _caption(number: int, field: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > limits.CAPTION:
        expected = f"a text of at most {limits.CAPTION} characters"
        _refuse(number, field, expected, {} if value is None else {field: value})
    return str(value)


def _refuse(number: int, field: str, expected: str, value: Mapping[str, Any]) -> NoReturn:
    found = repr(value[field])[:100] if field in value else "none"
    raise RequestRefused(
        f"line {number}, {field}: expected {expected}, found {found}", pointer=f"/{number}/{field}"
    )
