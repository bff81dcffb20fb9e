"""Objects that captions mention, by a list of objects with their names, which a user brings.

A list is a text in UTF-8 with one object a line: its names, separated by commas. A name has one or
more words. Regular plurals, and the irregular ones below, need not be listed. Captions are words
separated by blanks; of names that begin at the same word the longest one is found.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from service.contract.errors import MetricFailed
from service.contract.formats.digests import compute_digest

_MAX_BYTES = 1_000_000
_MAX_NAME = 100  # characters
_IRREGULAR = {  # ends of words, with those of their plurals
    "child": "children",
    "foot": "feet",
    "goose": "geese",
    "man": "men",
    "mouse": "mice",
    "ox": "oxen",
    "person": "people",
    "tooth": "teeth",
    "fe": "ves",
    "f": "ves",
}
_SIBILANTS = ("s", "x", "z", "ch", "sh", "o")  # after these a plural may end with -es
_VOWELS = "aeiou"

# What the published program (github.com/LisaAnne/Hallucination, utils/chair.py) does with words
# that stand together: the first word is no object of its own, and the second one is what is meant.
_ANIMALS = (
    *("animal", "bear", "bird", "cat", "cow", "cub", "dog", "elephant", "giraffe", "horse"),
    *("sheep", "zebra"),
)
_MEANT: Mapping[str, tuple[str, ...]] = {
    "baby": _ANIMALS,
    "adult": _ANIMALS,
    "passenger": ("jet", "train"),
    "bow": ("tie",),
}
_ELSE = {"toilet seat": "toilet"}  # the name that is meant
_NEITHER = ("hot dog", "teddy bear", "home plate")  # not even their words, unless they are listed
_TOILETS, _SEATS = {"toilet", "toilets"}, {("seat",), ("seats",)}  # beside one, they are no chairs

Phrase = tuple[str, ...]


@dataclass(frozen=True)
class ObjectList:
    """`named`: the object that words mean, None if it is none of the list; `digest`: SHA-256."""

    digest: str
    named: Mapping[Phrase, int | None]
    longest: int  # words of a name

    def mentioned(self, caption: str) -> list[int]:
        """The objects that a caption mentions, by number; an object as often as it is mentioned."""
        words = tuple(caption.lower().split())
        with_toilet = not _TOILETS.isdisjoint(words)
        found = [
            phrase for phrase in self._phrases(words) if not (with_toilet and phrase in _SEATS)
        ]
        return [number for phrase in found if (number := self.named[phrase]) is not None]

    def _phrases(self, words: Phrase) -> Iterator[Phrase]:
        """The known phrases from left to right, which share no words."""
        place = 0
        while place < len(words):
            ends = range(min(place + self.longest, len(words)), place, -1)
            known = (words[place:end] for end in ends if words[place:end] in self.named)
            phrase = next(known, ())
            if phrase:
                yield phrase
            place += max(1, len(phrase))


def read_object_list(path: Path) -> ObjectList:
    """Read a list. Raises MetricFailed, with the line and what was expected, if it is none."""
    if path.stat().st_size > _MAX_BYTES:
        raise MetricFailed(f"{path.name}: expected at most {_MAX_BYTES:,} bytes")
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise MetricFailed(f"{path.name}: expected a text in UTF-8") from None
    listed = _listed(text)
    if not listed:
        raise MetricFailed(f"{path.name}: expected an object in each line, found no line with text")
    plurals = {
        (*name[:-1], form): number for name, number in listed.items() for form in _forms(name[-1])
    }
    named = _with_phrases({**plurals, **listed})  # a listed name is what the list says
    return ObjectList(
        digest=compute_digest(path).removeprefix("sha256:"),
        named=named,
        longest=max(map(len, named)),
    )


def _listed(text: str) -> dict[Phrase, int]:
    """Each name in the list with the number of its line."""
    found: dict[Phrase, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        for name in line.split(","):
            phrase = tuple(name.lower().split())
            if not phrase:
                continue
            if len(name) > _MAX_NAME or not name.strip().isprintable():
                raise MetricFailed(
                    f"line {number}: expected names of at most {_MAX_NAME} printable characters, "
                    f"separated by commas, found {name.strip()!r:.60}"
                )
            if found.setdefault(phrase, number) != number:
                raise MetricFailed(
                    f"line {number}: {name.strip()!r:.60} is a name of the object in line "
                    f"{found[phrase]}, too; leave it in one of them"
                )
    return found


def _with_phrases(named: Mapping[Phrase, int]) -> dict[Phrase, int | None]:
    meant = [(f"{word} {head}", head) for word, heads in _MEANT.items() for head in heads]
    known: dict[Phrase, int | None] = {}
    for phrase, name in [*meant, *_ELSE.items(), *((phrase, None) for phrase in _NEITHER)]:
        first, last = phrase.split()
        number = None if name is None else named.get((name,))
        known |= {(first, form): number for form in _forms(last)}
    return {**known, **named}


def _forms(word: str) -> frozenset[str]:
    """A word and what may be its plurals. A plural that does not exist does no harm."""
    forms = {word, f"{word}s"}
    if word.endswith(_SIBILANTS):
        forms.add(f"{word}es")
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        forms.add(f"{word[:-1]}ies")
    ends = (end for end in _IRREGULAR if word.endswith(end))
    return frozenset(forms | {word.removesuffix(end) + _IRREGULAR[end] for end in ends})
