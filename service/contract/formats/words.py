"""The tokenizers of checkpoints, by which references become a model's words; and the most words
that a caption may have.
"""

import re
from collections.abc import Callable

from service.contract import limits

_TOKEN = re.compile(r"\w+|[^\w\s]")


def _karpathy(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"[^\w\s\-/,;:&]", "", text.lower()))


Tokenizer = str  # a name in TOKENIZERS; checkpoints say which is theirs
TOKENIZERS: dict[Tokenizer, Callable[[str], list[str]]] = {
    "karpathy": _karpathy,
    "blanks": str.split,
}


def is_too_long(caption: str) -> bool:
    """Whether a caption has more characters, or more tokens, than are accepted."""
    return len(caption) > limits.CAPTION or has_too_many(caption)


def has_too_many(text: str) -> bool:
    """Whether a caption has more tokens than accepted, counted as words and single signs."""
    return len(text) > limits.TOKENS and len(_TOKEN.findall(text)) > limits.TOKENS
