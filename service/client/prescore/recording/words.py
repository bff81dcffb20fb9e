"""Words of references, and the pieces of a model's tokenizer that make each of them."""

import re
import unicodedata
import warnings
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

import numpy as np

from prescore.errors import InvalidArgument
from prescore.recording.logits import move_to_cpu

_UNKNOWN = frozenset({"unk", "<unk>", "[unk]", "<unknown>"})  # tokens for words that are not known
_CAPITAL = 0.01  # of a vocabulary; one of small letters has a name or two
# In pieces of bytes, and in those of SentencePiece: a blank before a word.
_BLANKS = "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}\N{LOWER ONE EIGHTH BLOCK}"
_NEARLY = 0.8  # alike: a letter or two


def _split_karpathy(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"[^\w\s\-/,;:&]", "", text.lower()))


# Those that the service knows too, by which it counts the words of a reference.
TOKENIZERS: Mapping[str, Callable[[str], list[str]]] = {
    "karpathy": _split_karpathy,
    "blanks": str.split,
}


def warn_of_misspelling(tokenizer: str) -> None:
    """Warn of a name that is nearly one of ours: with it, words would not be counted."""
    if tokenizer in TOKENIZERS:
        return
    for known in TOKENIZERS:
        if SequenceMatcher(None, tokenizer.lower(), known).ratio() >= _NEARLY:
            warnings.warn(
                f"the tokenizer {tokenizer!r} is none that Prescore knows, and is taken as one of "
                f"your own: did you mean {known!r}?",
                stacklevel=3,
            )


def warn_of_small_letters(vocabulary: Sequence[str], tokenizer: str) -> None:
    """Warn where `karpathy` makes small letters for a model that has learned capital ones."""
    capital = sum(_is_capital(word.lstrip(_BLANKS)) for word in vocabulary)
    if tokenizer == "karpathy" and capital > _CAPITAL * len(vocabulary):
        warnings.warn(
            f"{capital} of {len(vocabulary)} words of the vocabulary begin with capital letters, "
            "but the tokenizer 'karpathy' makes references of small letters without signs, which "
            'this model was not trained on: expected tokenizer="blanks" where its training split '
            "captions at blanks, or any other name for a tokenizer of your own",
            stacklevel=3,
        )


def _is_capital(word: str) -> bool:
    return len(word) > 1 and word.istitle()


def find_unknown(vocabulary: Sequence[str]) -> dict[int, str]:
    """The tokens that stand for unknown words, by their ids."""
    return {at: word for at, word in enumerate(vocabulary) if word.casefold() in _UNKNOWN}


def join_words(reference: str, tokenizer: str) -> str:
    """The words of a reference with one blank between them; the reference as it stands where the
    tokenizer is not known.
    """
    split = TOKENIZERS.get(tokenizer)
    return reference if split is None else " ".join(split(reference))


def check_counts(counts: Any, pieces: int) -> list[int]:
    """Check counts of pieces of each word, which are `pieces` together."""
    array = np.asarray(move_to_cpu(counts))
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iu" or array.min() < 1)):
        raise InvalidArgument(
            f"expected counts of at least 1 piece for each word, without END, found {counts!r:.100}"
        )
    if array.sum() != pieces:
        raise InvalidArgument(
            f"expected counts whose sum is {pieces}, the targets without END, found {array.sum()}"
        )
    return [int(count) for count in array]


def count_pieces(text: str, offsets: Any, pieces: int) -> list[int]:
    """Count the pieces of each word of a text, by the characters of which each piece is. `offsets`
    (`pieces`, 2), and one more row that is not read where it has END's.
    """
    spans = _check_spans(text, offsets, pieces)
    _check_covered(text, spans)
    starts = [0, *(at + 1 for at, sign in enumerate(text) if sign == " ")] if text else []
    counts = [0] * len(starts)
    for place, (start, end) in enumerate(spans):
        own = _trim_blanks(text, start, end)
        word = bisect_right(starts, own[0]) - 1
        if " " in text[slice(*own)]:
            raise InvalidArgument(
                f"pieces[{place}], {text[start:end]!r:.60}, is of more than one word of "
                f"{text!r:.100}: words cannot be told; record pieces alone, without `pieces`"
            )
        counts[word] += 1
    if 0 in counts:
        lost = text.split(" ")[counts.index(0)]
        raise InvalidArgument(
            f"no piece is of the word {lost!r:.60} of {text!r:.100}: "
            "expected the whole text to be tokenized, without truncation"
        )
    return counts


def _check_spans(text: str, offsets: Any, pieces: int) -> list[tuple[int, int]]:
    """The characters of each piece, in order."""
    array = np.asarray(move_to_cpu(offsets))
    array = array.reshape(0, 2) if array.size == 0 else array
    if array.shape not in ((pieces, 2), (pieces + 1, 2)) or array.dtype.kind not in "iuf":
        raise InvalidArgument(
            f"expected offsets ({pieces}, 2), first character and end of each target without END, "
            f"found {array.shape}"
        )
    spans = [(int(start), int(end)) for start, end in array[:pieces]]
    if any(not 0 <= start < end <= len(text) for start, end in spans) or any(
        one[0] > other[0] for one, other in pairwise(spans)
    ):
        raise InvalidArgument(
            f"expected offsets of characters in {text!r:.100}, which `images()` gives; found others"
        )
    return spans


def _check_covered(text: str, spans: Sequence[tuple[int, int]]) -> None:
    """Raise unless all characters are of pieces, except blanks, and what tokenizers leave out:
    marks, signs without width, and what stands for bytes that are no text.
    """
    left = set(range(len(text))).difference(*(range(*span) for span in spans))
    for at in sorted(left):
        if text[at] not in " \ufffd" and unicodedata.category(text[at])[0] not in "MC":
            raise InvalidArgument(
                f"no piece is of characters[{at}] of {text!r:.100}, {text[at]!r}: expected the "
                "whole text to be tokenized as `images()` gives it, without truncation"
            )


def _trim_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """A piece's characters without the blanks around them; blanks alone are of the next word."""
    while start < end and text[start] == " ":
        start += 1
    while end > start and text[end - 1] == " ":
        end -= 1
    return start, end
