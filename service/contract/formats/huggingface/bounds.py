"""Bounds of a config.json: numbers and lists that no model has are refused before it is built."""

import math
import re
from typing import Any

from service.contract.errors import ConfigInvalid

_MOST_DEPTH, _MOST_VALUES, _MOST_TEXT = 8, 50_000, 10_000
_MOST_NUMBER, _MOST_LAYERS = 1 << 24, 512
_LAYERS = re.compile(r"(num|n)_.*(layers?|blocks|experts)|n_layer|depths?|.*_layers")


def check_bounds(config: dict[str, Any], where: str) -> None:
    """Raise ConfigInvalid with the place of what is out of bounds."""
    _check(config, where, 0, "")


def _check(value: Any, where: str, depth: int, name: str) -> int:
    """Check a value, and what is in it; returns how many values there are."""
    expected, many = _find_bound(value, depth, name), 1
    inner: list[tuple[str, str, Any]] = []
    if isinstance(value, dict):
        inner = [(str(key), str(key), each) for key, each in value.items()]
    elif isinstance(value, list):
        inner = [(str(at), name, each) for at, each in enumerate(value)]
    for place, own, each in [] if expected else inner:
        many += _check(each, f"{where}/{place}", depth + 1, own)
        if many > _MOST_VALUES:
            expected = f"at most {_MOST_VALUES:,} values"
            break
    if expected:
        raise ConfigInvalid(
            f"{where[:200]}: expected {expected}, found {str(value)[:60]}",
            pointer=f"/{where[:200]}",
        )
    return many


def _find_bound(value: Any, depth: int, name: str) -> str | None:
    """Find the bound of a value that is out of bounds; None where it is within them."""
    match value:
        case dict() | list() if depth >= _MOST_DEPTH:
            return f"at most {_MOST_DEPTH} levels"
        case str() if len(value) > _MOST_TEXT:
            return f"at most {_MOST_TEXT:,} characters"
        case float() if not math.isfinite(value):
            return "a finite number"
        case int() if "theta" not in name:  # rotary bases are large
            most = _MOST_LAYERS if _LAYERS.fullmatch(name) else _MOST_NUMBER
            return f"a number up to {most:,}" if abs(value) > most else None
    return None
