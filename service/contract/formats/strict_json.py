"""Strict JSON: text that different JSON readers could read differently is refused."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from service.contract.errors import ConfigInvalid, RequestRefused
from service.contract.wording import describe_field_error

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_EXPECTED = {  # by how `json` begins to say it
    "Expecting value": "a value",
    "Expecting property name": "a name in double quotes",
    "Expecting ':'": "a colon",
    "Expecting ','": "a comma, ] or }",
    "Extra data": "nothing more",
    "Unterminated string": "a closing quote for the text that begins",
    "Invalid control character": r"\n or \t for a line break or tab in text",
    "Invalid \\": r"an escape such as \n, \" or \u00e9",
    "Unexpected UTF-8 BOM": "no byte order mark (BOM)",
}
_SHOWN = 20  # characters of what stood there
_CUT_OFF = "found the end: is it cut off?"
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # only these can make a lone surrogate


class NotJson(ValueError):
    """`where` is the JSON pointer of the error, as far as it is known."""

    def __init__(self, detail: str, where: str = "") -> None:
        super().__init__(detail)
        self.where = where


def parse_json(text: str, most_keys: float = math.inf) -> Any:
    """Parse JSON; NotJson on duplicate keys, NaN, infinity, lone surrogates, too deep nesting, and
    objects with more than `most_keys` keys.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=partial(_unique, most_keys=most_keys),
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_real,
        )
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise NotJson(_told(error)) from None
    except RecursionError:
        raise NotJson("expected JSON, found nesting too deep") from None
    if _ESCAPED_SURROGATE.search(text) and not _is_text(value):
        _refuse_surrogates(value)
    return value


def parse_json_line(number: int, line: bytes, refused: type[RequestRefused]) -> dict[str, Any]:
    """The JSON object in a file's line; raises `refused` with line and field."""
    try:
        value = parse_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise refused(f"line {number}: not UTF-8 (byte {error.start})") from None
    except NotJson as error:
        field = error.where.replace("/", ", ", 1)
        raise refused(f"line {number}{field}: {error}", pointer=f"/{number}{error.where}") from None
    if not isinstance(value, dict):
        raise refused(f"line {number}: expected a JSON object, found {value!r:.60}")
    return value


def replace_infinite(value: Any) -> Any:
    """The value with None in place of every infinite or undefined number, as JSON needs."""
    if isinstance(value, Mapping):
        return {name: replace_infinite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [replace_infinite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _told(error: json.JSONDecodeError) -> str:
    """Say what was expected, where, and what stood there."""
    if not error.doc.strip():
        return "expected JSON, found an empty text"
    begun = _text_cut_off(error)
    at, message = (error.pos, error.msg) if begun is None else (begun, "Unterminated string")
    named = (said for begin, said in _EXPECTED.items() if message.startswith(begin))
    expected = next(named, f"no {error.msg.lower()}")
    told = f"expected JSON with {expected} at {_place(error.doc, at)}"
    before, rest = error.doc[: error.pos], error.doc[error.pos :]
    if begun is not None or not rest.strip():
        return f"{told}, {_CUT_OFF}"
    is_control = error.msg.startswith("Invalid control")
    found = rest[0] if is_control else rest[:_SHOWN].splitlines()[0]
    return f"{told}, found {found!r}{_hint(before, rest)}"


def _place(text: str, at: int) -> str:
    """A text in one line may be a line of a file, which has another number there: it is told by its
    column.
    """
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return f"line {line}, column {column}" if "\n" in text.rstrip() else f"column {column}"


def _text_cut_off(error: json.JSONDecodeError) -> int | None:
    """Find where the text begins in whose middle all ends, but for a line break; else None."""
    if error.msg.startswith("Unterminated string"):
        return error.pos
    if error.msg.startswith("Invalid control") and not error.doc[error.pos :].strip():
        try:
            json.loads(error.doc[: error.pos])
        except json.JSONDecodeError as again:
            return again.pos
    return None


def _hint(before: str, rest: str) -> str:
    if rest.startswith("'"):
        return "; JSON has double quotes"
    if rest.startswith(("True", "False", "None")):
        return "; JSON has true, false and null"
    is_left = rest.startswith(("]", "}")) and before.rstrip().endswith(",")
    return "; no comma may stand before it" if is_left else ""


def _unique(pairs: list[tuple[str, Any]], most_keys: float) -> dict[str, Any]:
    if len(pairs) > most_keys:
        raise NotJson(f"expected at most {most_keys} keys in an object, found {len(pairs)}")
    result = dict(pairs)
    if len(result) < len(pairs):
        key, times = Counter(key for key, _ in pairs).most_common(1)[0]
        raise NotJson(f"expected every key once, found {key!r:.60} {times} times")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    """`-0` and numbers above 64 bits are floats in other readers, and so here."""
    return _real(digits) if digits == "-0" or len(digits) > 18 else int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotJson(f"expected a number that 64 bits can hold, found {digits:.40}")
    return number


def _is_text(value: Any) -> bool:
    """Tell whether all text can be written as UTF-8; False also where nesting is too deep."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _refuse_surrogates(value: Any) -> None:
    """Without recursion, since the parser accepts nesting as deep as the stack allows."""
    stack = [iter([("", value)])]
    path: list[object] = [""]
    while stack:
        for name, item in stack[-1]:
            path[-1] = name
            if _is_broken(name):
                raise NotJson(
                    "expected text, found a lone surrogate in a key", join_pointer(path[1:-1])
                )
            if _is_broken(item):
                raise NotJson("expected text, found a lone surrogate", join_pointer(path[1:]))
            if isinstance(item, dict | list):
                stack.append(_entries(item))
                path.append("")
                break
        else:
            stack.pop()
            path.pop()


def _is_broken(value: object) -> bool:
    return isinstance(value, str) and _SURROGATE.search(value) is not None


def _entries(value: dict[str, Any] | list[Any]) -> Iterator[tuple[Any, Any]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def join_pointer(path: Iterable[object]) -> str:
    """A JSON pointer (RFC 6901): `/` and `~` in names are escaped."""
    names = (str(name).replace("~", "~0").replace("/", "~1") for name in path)
    return "".join(f"/{name}" for name in names)[:200]


class JsonPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def parse_object(text: str, name: str, pointer: str, most_keys: float = math.inf) -> dict[str, Any]:
    """The JSON object of a file or entry, of this name and place. Raises ConfigInvalid."""
    try:
        value = parse_json(text, most_keys)
    except NotJson as error:
        raise ConfigInvalid(f"{name}: {error}", pointer=f"{pointer}{error.where}") from None
    if not isinstance(value, dict):
        raise ConfigInvalid(f"{name}: expected an object, found {value!r:.60}", pointer=pointer)
    return value


Model = TypeVar("Model", bound=BaseModel)


def parse_model(model: type[Model], text: str, name: str, pointer: str) -> Model:
    """`name` and `pointer`: of the whole, for people and for programs. Raises ConfigInvalid."""
    try:
        return model.model_validate(parse_json(text))
    except NotJson as error:
        raise ConfigInvalid(f"{name}: {error}", pointer=pointer) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"/{part}" for part in first["loc"])[:100]
        raise ConfigInvalid(
            f"{name}{where}: {describe_field_error(first, model.model_fields)}",
            pointer=pointer + where,
        ) from None
