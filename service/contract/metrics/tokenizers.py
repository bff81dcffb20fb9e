"""One row for every tokeniser of captions and references.

The function is under the same name in `workers.metrics.tokens.TOKENIZERS`. Tokenisers of captioners
(how references become a model's words) are in `service.contract.formats.vocabularies`.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

USUAL = "ptb"
# Scripts without blanks between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese.
_WITHOUT_BLANKS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_LOOKED_AT = 100  # characters of a text: a request may have millions
_LONGEST_WORD = 4  # letters, on average: Chinese words have fewer than 2, Thai words about 3
_SHORTEST_TEXT = 3  # letters of a text that has no blank


@dataclass(frozen=True)
class TokenizerRow:
    """`signature`: its name in the signatures of scores. Probes accept every tokeniser."""

    signature: str
    is_scored: bool = True  # evaluations and trainings of metrics accept it
    needs_blanks: bool = False  # between words
    drops_signs: bool = False  # and all characters beyond U+FFFF


TOKENIZERS: dict[str, TokenizerRow] = {
    "ptb": TokenizerRow("ptb3.4.1", needs_blanks=True, drops_signs=True),
    "none": TokenizerRow("none", needs_blanks=True),
    "character": TokenizerRow("char", is_scored=False),
    "regex": TokenizerRow("words+marks", is_scored=False, needs_blanks=True),
}


def list_tokenizers() -> list[str]:
    return list(TOKENIZERS)


def list_scored_tokenizers() -> list[str]:
    return [name for name, row in TOKENIZERS.items() if row.is_scored]


def needs_blanks(tokenizer: str) -> bool:
    """Tell whether a tokeniser needs blanks between words; one that is no longer known does not."""
    row = TOKENIZERS.get(tokenizer)
    return row is not None and row.needs_blanks


def finds_words(tokenizer: str, text: str) -> bool:
    """Tell whether a tokeniser finds a text's words. It finds none where the text has no blanks
    between them (Chinese, Japanese, Thai), and where nothing is left of it (emoji).
    """
    row = TOKENIZERS[tokenizer]
    if row.drops_signs and not any(map(_is_kept, text[:_LOOKED_AT])):
        return False
    return not (row.needs_blanks and is_unbroken(text))


def is_unbroken(text: str) -> bool:
    """Tell whether most letters of a text's beginning are of scripts without blanks."""
    text = text[:_LOOKED_AT]
    if not _WITHOUT_BLANKS.search(text):
        return False
    parts = "".join(each if unicodedata.category(each)[0] in "LMN" else " " for each in text)
    letters = [count for part in parts.split() if (count := _letters_without_blanks(part))]
    shortest = _LONGEST_WORD * len(letters) + 1 if len(letters) > 1 else _SHORTEST_TEXT
    return sum(letters) >= max(shortest, sum(map(str.isalpha, text)) / 2)


def are_mostly_unbroken(texts: Iterable[str]) -> bool:
    found = [is_unbroken(text) for text in texts]
    return sum(found) > len(found) / 2


def _letters_without_blanks(text: str) -> int:
    return sum(map(str.isalpha, _WITHOUT_BLANKS.findall(text)))


def _is_kept(character: str) -> bool:
    """Tell whether PTB keeps a character as a word, or as a part of one."""
    return character <= "\uffff" and unicodedata.category(character)[0] in "LNS"
