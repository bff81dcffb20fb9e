"""How references become a model's words; the API shows them, the workers encode them."""

import re
from collections.abc import Callable, Mapping

from service.contract.formats.checkpoint_header import Tokenizer


def _karpathy(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"[^\w\s\-/,;:&]", "", text.lower()))


TOKENIZERS: Mapping[Tokenizer, Callable[[str], list[str]]] = {
    "karpathy": _karpathy,
    "blanks": str.split,
}
