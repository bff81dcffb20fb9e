"""Forms of tokenizers (tokenizer.json): how much longer a text may become by its normalizer, and a
piece by its decoder. Replacements after one another multiply: thirty that double make gigabytes of
one letter, which no sample needs to contain.
"""

import json
from collections.abc import Mapping
from typing import Any

from service.contract.errors import InvalidPackage

MOST_GROWTH = 64  # characters of one; those in use replace one by one, or a blank by three
_LISTS = ("normalizers", "decoders")


def check_growth(text: str, name: str) -> None:
    """Raise InvalidPackage, which names the file, where a character may become more than
    `MOST_GROWTH`.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return  # the library says what is wrong
    for part in ("normalizer", "decoder"):
        growth = find_growth(found.get(part)) if isinstance(found, Mapping) else 1
        if growth > MOST_GROWTH:
            raise InvalidPackage(
                f"{name}: its {part} may make more than {MOST_GROWTH} characters of one, by "
                "replacements that are longer than the text that they replace",
                pointer=f"/{name}",
            )


def find_growth(step: Any) -> int:
    """The characters that one may become by a normalizer or a decoder: a step, or a sequence."""
    if not isinstance(step, Mapping):
        return 1
    growth = 1
    for part in _LISTS:
        inner = step.get(part)
        for each in inner if isinstance(inner, list) else ():
            growth = min(growth * find_growth(each), MOST_GROWTH + 1)
    if step.get("type") == "Replace":
        growth *= _find_replacement_growth(step)
    return growth


def _find_replacement_growth(step: Mapping[str, Any]) -> int:
    content, pattern = str(step.get("content", "")), step.get("pattern")
    match pattern:
        case {"String": str(replaced)} if replaced:
            return max(1, -(-len(content) // len(replaced)))
    return 1 + len(content)  # a pattern may match at every place, and where nothing stands
