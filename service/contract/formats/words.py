"""The tokenizers of checkpoints: how references become a model's words."""

import re
from collections.abc import Callable


def _karpathy(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"[^\w\s\-/,;:&]", "", text.lower()))


Tokenizer = str  # a name in TOKENIZERS; checkpoints say which is theirs
TOKENIZERS: dict[Tokenizer, Callable[[str], list[str]]] = {
    "karpathy": _karpathy,
    "blanks": str.split,
}
