"""Words without their endings, so that "dogs" and "dog", "riding" and "rides" are one. Endings are
known of English; in other languages words are compared as they are written.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

_FORMS = (  # each with its stem
    "men man, women woman, children child, people person, persons person, feet foot, teeth tooth, "
    "geese goose, mice mouse, wolves wolf, knives knife, leaves leaf, shelves shelf, loaves loaf, "
    "has have, having have, is be, are be, was be, were be, being be, an a, ran run, sat sit, "
    "stood stand, rode ride, held hold, lying lie, grey gray"
)
_IRREGULAR = dict(pair.split() for pair in _FORMS.split(", "))
_VOWELS = frozenset("aeiouy")
_SHORT = 3  # letters: shorter words are left as they are
_CACHED = 1 << 17


@lru_cache(_CACHED)
def stem_word(word: str) -> str:
    """A key that the forms of a word share; it need not be a word. English alone."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= _SHORT or not word.isalpha():
        return word
    return _without_e(_of_verb(_of_one(word)))


def _of_one(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > _SHORT + 1:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1]


def _of_verb(word: str) -> str:
    for ending in ("ing", "ed"):
        left = word.removesuffix(ending)
        if left != word and len(left) >= _SHORT and _VOWELS & set(left):
            return left[:-1] if left[-1] == left[-2] and left[-1] not in "ls" else left
    return word


def _without_e(word: str) -> str:
    return word.removesuffix("e") if len(word) > _SHORT else word


ENGLISH, WRITTEN = "english", "written"
STEMS: Mapping[str, Callable[[str], str]] = {ENGLISH: stem_word, WRITTEN: str}
_TOLD_BY = frozenset(["a", "an", "and", "are", "in", "is", "of", "on", "the", "to", "with"])
_SHARE = 0.15  # of English captions a third of the words are these, of German ones 4 %


def choose_stems(captions: Iterable[str]) -> str:
    """Choose how words of these captions (tokens) are made stems; small words tell English."""
    words = [word for said in captions for word in said.split()]
    told = sum(word in _TOLD_BY for word in words)
    return ENGLISH if told >= _SHARE * len(words) else WRITTEN
