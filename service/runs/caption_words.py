"""Words of captions: held against references of their image, and exchanged between two captions.

A word is a run of letters, digits, apostrophes and hyphens, in lower case. A content word has a
letter or a digit, and is none of FUNCTION_WORDS.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_FUNCTION_WORDS = """
    a about above across after again against all along also am among an and another any are around
    as at be because been before behind being below beneath beside besides between beyond both but
    by can could did do does doing down during each either else every few for from had has have
    having he her here hers herself him himself his how i if in inside into is it it's its itself
    just many me more most much my near neither no nor not of off on onto or other others our
    out outside over own past per she should since so some such than that the their theirs them
    themselves then there there's these they they're this those through to together too toward
    towards under until up upon us very was we were what when where which while who whom whose why
    will with within without would you your
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
MOST_WORDS = 500  # of a text, from its beginning; the longest descriptions have some hundreds
MOST_LISTED = 50
MOST_ALIGNED = 40  # words of a caption that are held against another caption's
_WORD = re.compile("[\\w'\u2019-]+")
_SIGNS = "'\u2019-"


@dataclass(frozen=True, slots=True)
class WordComparison:
    """Content words of a caption, held against references. `nearest`: the reference that shares
    most words with it. `shares_pair`: two successive words of it are successive in a reference.
    `is_copied`: its words are those of a reference, in their order.
    """

    nearest: str | None
    invented: list[str]
    missed: list[str]
    matched: list[str]
    shares_pair: bool
    is_copied: bool


def split_words(text: str) -> list[str]:
    """The first words of a text."""
    return [word.lower() for word in _WORD.findall(text.replace("_", " "))[:MOST_WORDS]]


def list_content_words(words: Iterable[str]) -> list[str]:
    """The content words, each once."""
    found = dict.fromkeys(words)
    return [word for word in found if word not in FUNCTION_WORDS and word.strip(_SIGNS)]


def compare_words(caption: str, references: Sequence[str]) -> WordComparison:
    """Hold a caption against the references of its image; nothing is known without references."""
    if not references:
        return WordComparison(None, [], [], [], shares_pair=False, is_copied=False)
    words, others = split_words(caption), [split_words(text) for text in references]
    shares = [_measure_overlap(words, other) for other in others]
    at = shares.index(max(shares))
    content, nearest = list_content_words(words), set(others[at])
    known, own = set().union(*others), set(words)
    pairs = set(pairwise(words))
    return WordComparison(
        nearest=references[at],
        invented=[word for word in content if word not in known][:MOST_LISTED],
        missed=[word for word in list_content_words(others[at]) if word not in own][:MOST_LISTED],
        matched=[word for word in content if word in nearest][:MOST_LISTED],
        shares_pair=any(not pairs.isdisjoint(pairwise(other)) for other in others),
        is_copied=words in others,
    )


def find_exchanges(caption: str, other: str) -> set[tuple[str, str]]:
    """Content words of a caption, each with the content word that the other has in its place:
    between the same words of a longest common subsequence, in a gap of the same length.
    """
    a, b = (split_words(text)[:MOST_ALIGNED] for text in (caption, other))
    found: set[tuple[str, str]] = set()
    i = j = 0
    for next_a, next_b in [*_align_words(a, b), (len(a), len(b))]:
        if next_a - i == next_b - j:
            found.update(zip(a[i:next_a], b[j:next_b], strict=True))
        i, j = next_a + 1, next_b + 1
    content = {*list_content_words([*a, *b])}
    return {pair for pair in found if content.issuperset(pair)}


def _align_words(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """The places of a longest common subsequence: the first match of two equal words is taken, and
    of equally long ones that which leaves out a word of `a`.
    """
    ends = _measure_ends(a, b)

    def length(i: int, j: int) -> int:
        many = len(b) - j
        return many - (ends[i] & ((1 << many) - 1)).bit_count()

    places = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            places.append((i, j))
            i, j = i + 1, j + 1
        elif length(i + 1, j) >= length(i, j + 1):
            i += 1
        else:
            j += 1
    return places


def _measure_ends(a: Sequence[str], b: Sequence[str]) -> list[int]:
    """The lengths of longest common subsequences of the ends of `a`, each with all ends of `b`: the
    zeros in the last n bits of a number, for the last n words of `b`. A row of the usual table is
    one addition (Hyyrö 2004), ten times as fast.
    """
    places: dict[str, int] = {}
    for at, word in enumerate(reversed(b)):
        places[word] = places.get(word, 0) | 1 << at
    every = (1 << len(b)) - 1
    ends = [every]
    for word in reversed(a):
        here = ends[-1] & places.get(word, 0)
        ends.append((ends[-1] + here | ends[-1] - here) & every)
    return ends[::-1]


def _measure_overlap(words: Sequence[str], other: Sequence[str]) -> float:
    """F1 of two multisets of words."""
    left = Counter(other)
    shared = 0
    for word in words:
        if left[word] > 0:
            left[word] -= 1
            shared += 1
    return 2 * shared / ((len(words) + len(other)) or 1)
