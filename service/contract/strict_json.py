"""JSON as the strictest readers take it, so that no two readers see two different things."""

import json
import re
from typing import Any, NoReturn

_SURROGATE = re.compile(r"[\ud800-\udfff]")


class NotJson(ValueError):
    pass


def parse(text: str) -> Any:
    """No duplicate keys, no NaN, no lone surrogates, no endless nesting; raises NotJson."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_number,
        )
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise NotJson(f"expected JSON, found {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise NotJson(f"expected JSON, found {_reason(error)}") from None
    if "\\" in text and _has_surrogate(value):  # only an escape can make a lone one
        raise NotJson("a lone surrogate is not text")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise NotJson("a key occurs twice")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not JSON")


def _number(digits: str) -> int | float:
    """`-0` is a float to other readers, and so is what no 64-bit integer holds."""
    if digits == "-0" or len(digits) > 18:
        return float(digits)
    return int(digits)


def _reason(error: Exception) -> str:
    return "nesting too deep" if isinstance(error, RecursionError) else "something else"


def _has_surrogate(value: Any) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(_has_surrogate(key) or _has_surrogate(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_surrogate, value))
