"""For a gate that cannot be read: the one that was probably meant."""

import re
from collections.abc import Callable, Sequence

_NAME = re.compile(r"[A-Za-z_]\w*(?:[-. ][A-Za-z0-9_]+)*")
_TURNED = {">=": "<=", "<=": ">=", ">": "<", "<": ">"}
_BACKWARDS = re.compile(r"\s*([^<>=]+?)\s*(>=|<=|>|<)\s*([A-Za-z_]\w*)\s*")
_SIGNS: Sequence[tuple[str, str]] = (
    (r"≥|=>", ">="),
    (r"≤|=<", "<="),
    (r"([<>])\s+=", r"\1="),
    (r"(?<![<>=])==?(?![<>=])", ">="),
    (r"(?<=[0-9]),(?=[0-9])", "."),
)


def repaired(text: str, is_name: Callable[[str], bool]) -> str:
    """The text with the signs of gates, points in numbers, and names as `is_name` knows them."""
    for wrong, right in _SIGNS:
        text = re.sub(wrong, right, text)
    text = _NAME.sub(lambda found: _name(found[0], is_name), text)
    backwards = _BACKWARDS.fullmatch(text)
    if backwards and is_name(backwards[3]):
        text = f"{backwards[3]} {_TURNED[backwards[2]]} {backwards[1]}"
    return text


def _name(written: str, is_name: Callable[[str], bool]) -> str:
    """A name of letters, digits and `_`, as CIDEr-D and BLEU4 are known by."""
    plain = re.sub(r"[-. ]", "_", written.lower())
    forms = plain, re.sub(r"([a-z])([0-9])$", r"\1_\2", plain)
    return next(filter(is_name, forms), written)
