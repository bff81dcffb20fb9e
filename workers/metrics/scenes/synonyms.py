"""WordNet as METEOR's jar packs it: which sets of synonyms a word belongs to. It is read in Python,
so that scoring starts no Java.
"""

import zipfile
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path

_CONTROLS = "".join(map(chr, range(33)))  # characters that Java trims

# WordNet's rules of detachment, in its order: nouns, verbs, adjectives. The first rule whose
# result is a known word counts.
_RULES = (
    *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh")),
    *(("men", "man"), ("ies", "y")),
    *(("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", "")),
    *(("ing", "e"), ("ing", "")),
    *(("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
)


class Synonyms:
    def __init__(self, jar: Path) -> None:
        self._jar = jar
        self.of = cache(self._of)
        self.concept = cache(self._concept)

    def _of(self, phrase: str) -> frozenset[int]:
        """The sets of a word or phrase and of its base forms."""
        word = phrase.strip(_CONTROLS).lower().replace(" ", "_")
        bases = self._irregular.get(word)
        if bases is None:
            bases = (self._base(word),)
        return frozenset().union(*map(self._sets_of, (word, *bases)))

    def _concept(self, phrase: str) -> frozenset[str | int]:
        """A phrase and its sets. Two concepts that share anything are similar."""
        return frozenset({phrase, *self.of(phrase)})

    def _sets_of(self, word: str) -> frozenset[int]:
        return frozenset(map(int, self._sets.get(word, "").split()))

    def _base(self, word: str) -> str:
        if word.endswith("ss") or len(word) <= 2:
            return word
        for suffix, ending in _RULES:
            if word.endswith(suffix):
                found = word.removesuffix(suffix) + ending
                if found in self._sets:
                    return found
        return ""

    @cached_property
    def _sets(self) -> Mapping[str, str]:
        lines = self._lines("synonym/english.synsets")
        return dict(zip(lines[::2], lines[1::2], strict=True))

    @cached_property
    def _irregular(self) -> Mapping[str, tuple[str, ...]]:
        lines = self._lines("synonym/english.exceptions")
        found: dict[str, tuple[str, ...]] = {}
        for base, forms in zip(lines[::2], lines[1::2], strict=True):
            for form in forms.split():
                found[form] = (*found.get(form, ()), base)
        return found

    def _lines(self, member: str) -> list[str]:
        with zipfile.ZipFile(self._jar) as jar:
            return jar.read(member).decode("utf-8").removesuffix("\n").split("\n")
