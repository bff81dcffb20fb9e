"""Words of captions and references, as the guide defines them: letter by letter, without sets."""

import unicodedata
from fractions import Fraction
from functools import cache
from itertools import pairwise

from service.runs.caption_words import FUNCTION_WORDS


def words(text):
    found, word = [], ""
    for letter in [*text, " "]:
        if unicodedata.category(letter)[0] in "LN" or letter in "'\u2019-":
            word += letter
        elif word:
            found.append(word.lower())
            word = ""
    return found


def content(found):
    kept = []
    for word in found:
        has_letter = any(unicodedata.category(letter)[0] in "LN" for letter in word)
        if has_letter and word not in FUNCTION_WORDS and word not in kept:
            kept.append(word)
    return kept


def f1(one, other):
    shared = sum(min(one.count(word), other.count(word)) for word in sorted({*one}))
    return Fraction(2 * shared, max(len(one) + len(other), 1))


def compare(caption, references):
    """nearest, invented, missed, matched, whether two successive words are shared, and whether all
    are those of a reference.
    """
    if not references:
        return None, [], [], [], False, False
    own, others = words(caption), [words(text) for text in references]
    best = 0
    for at, other in enumerate(others):
        if f1(own, other) > f1(own, others[best]):
            best = at
    said = [word for other in others for word in other]
    pairs = [pair for other in others for pair in pairwise(other)]
    return (
        references[best],
        [word for word in content(own) if word not in said],
        [word for word in content(others[best]) if word not in own],
        [word for word in content(own) if word in others[best]],
        any(pair in pairs for pair in pairwise(own)),
        any(own == other for other in others),
    )


def exchanges(caption, other):
    """Pairs of content words in the same place of gaps of a longest common subsequence: that which
    takes the first match, and else leaves out a word of the caption where that loses nothing.
    """
    a, b = words(caption)[:40], words(other)[:40]

    @cache
    def longest(i, j):
        if i == len(a) or j == len(b):
            return ()
        if a[i] == b[j]:
            return ((i, j), *longest(i + 1, j + 1))
        return max(longest(i + 1, j), longest(i, j + 1), key=len)

    found = set()
    ends = [(-1, -1), *longest(0, 0), (len(a), len(b))]
    for (i, j), (k, m) in pairwise(ends):
        one, two = a[i + 1 : k], b[j + 1 : m]
        if len(one) == len(two):
            found |= {
                (x, y) for x, y in zip(one, two, strict=True) if content([x]) and content([y])
            }
    return found
