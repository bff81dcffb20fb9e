"""Vocabularies and tokenizers of captioners, and the most words that a caption may have."""

import re
from collections.abc import Callable

from service.contract import limits
from service.contract.errors import HeaderTooLarge, VocabularyInvalid
from service.contract.formats import safetensors_header, strict_json

_TOKEN = re.compile(r"\w+|[^\w\s]")


def _karpathy(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"[^\w\s\-/,;:&]", "", text.lower()))


ModelTokenizer = str  # a name in MODEL_TOKENIZERS; checkpoints say which is theirs
MODEL_TOKENIZERS: dict[ModelTokenizer, Callable[[str], list[str]]] = {
    "karpathy": _karpathy,
    "blanks": str.split,
}


def is_caption_too_long(caption: str) -> bool:
    return len(caption) > limits.CAPTION or has_too_many_tokens(caption)


def has_too_many_tokens(text: str) -> bool:
    """Tell whether a caption has too many tokens, counted as words and single signs."""
    return len(text) > limits.TOKENS and len(_TOKEN.findall(text)) > limits.TOKENS


MAX_VOCABULARY = 250_000
MAX_WORD_BYTES = 256


def parse_vocabulary(text: str, what: str, pointer: str | None = None) -> tuple[str, ...]:
    """Words by their ids, of a JSON list. Raises VocabularyInvalid and HeaderTooLarge."""
    pointer = f"/{what}" if pointer is None else pointer
    try:
        words = safetensors_header.parse_string_list(text, MAX_VOCABULARY)
    except strict_json.NotJson as error:
        raise VocabularyInvalid(f"{what}: {error}", pointer=f"{pointer}{error.where}") from None
    except HeaderTooLarge as error:
        raise HeaderTooLarge(f"{what}: {error.detail}", pointer=pointer) from None
    if len(words) < 2:
        raise VocabularyInvalid(
            f"expected at least the edge token and UNK (ids 0 and 1), found "
            f"{'one entry' if words else 'none'}",
            pointer=pointer,
        )
    seen: dict[str, int] = {}
    for index, word in enumerate(words):
        problem = _word_problem(word)
        if word in seen:
            problem = f"is also word {seen[word]}"
        if problem:
            raise VocabularyInvalid(
                f"{what}, word {index}: {word!r:.60} {problem}", pointer=f"{pointer}/{index}"
            )
        seen[word] = index
    return tuple(words)


def _word_problem(word: str) -> str | None:
    if not word:
        return "is empty"
    if len(word.encode()) > MAX_WORD_BYTES:
        return f"has {len(word.encode())} bytes, at most {MAX_WORD_BYTES} are accepted"
    if word.split() != [word]:
        return "has a blank in it; captions are words joined by blanks"
    return None
