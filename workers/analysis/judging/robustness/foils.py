"""Wrong captions made from right ones by rules: a word exchanged, roles swapped, half left out,
half said twice. The word lists are English and small, and our own.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

_WORD = re.compile(r"[A-Za-z]+")
_ARTICLE = re.compile(r"\b([Aa])n? $")
_LEAST = 6  # words of a caption of which half says something

# Words that may stand for each other are in one group: none of them is a foil for another.
_ANIMALS = (
    ("dog", "puppy"),
    ("cat", "kitten"),
    ("horse", "pony"),
    ("cow", "bull"),
    ("bird", "parrot", "pigeon"),
    ("sheep", "lamb"),
    ("elephant",),
    ("bear",),
    ("zebra",),
    ("giraffe",),
)
_THINGS = (
    ("ball", "football", "basketball", "soccer"),
    ("frisbee", "disc"),
    ("kite",),
    ("umbrella", "parasol"),
    ("guitar", "instrument"),
    ("laptop", "computer"),
    ("phone", "cellphone"),
    ("book",),
    ("pizza",),
    ("cake",),
    ("sandwich",),
    ("banana",),
    ("bicycle", "bike"),
    ("car", "taxi"),
    ("truck",),
    ("bus",),
    ("train",),
    ("boat", "canoe", "kayak", "ship"),
    ("plane", "airplane", "jet"),
    ("motorcycle", "motorbike"),
)
_COLOURS = (
    ("red",),
    ("blue",),
    ("green",),
    ("yellow",),
    ("orange",),
    ("purple", "pink"),
    ("brown", "tan"),
    ("black",),
    ("white",),
    ("gray", "grey"),
)
_NUMBERS = (("two", "couple", "pair"), ("three",), ("four",), ("five",), ("six",))
_VERBS = (
    ("sitting", "seated", "sits", "sit"),
    ("standing", "stands", "stand"),
    ("running", "runs", "run"),
    ("walking", "walks", "walk"),
    ("jumping", "jumps", "jump", "leaping", "leaps"),
    ("sleeping", "sleeps", "sleep", "lying", "laying", "lies"),
    ("swimming", "swims", "swim"),
    ("climbing", "climbs", "climb"),
    ("eating", "eats", "eat"),
    ("dancing", "dances", "dance"),
)
_RELATIONS = (("under", "below", "beneath"), ("on", "above", "over", "atop"), ("behind",), ("in",))

Find = Callable[[str, Sequence[str], random.Random], str | None]


def _exchange(*lists: Sequence[Sequence[str]]) -> Find:
    """Exchange a word for one of its list, of the same form, that no caption of the image holds."""

    def find(caption: str, all_captions: Sequence[str], rng: random.Random) -> str | None:
        named = {word.lower() for text in all_captions for word in _WORD.findall(text)}
        fitting = [
            (found, words)
            for found in _WORD.finditer(caption)
            for words in [_others(found[0].lower(), lists, named)]
            if words
        ]
        if not fitting:
            return None
        found, words = rng.choice(fitting)
        new = rng.choice(words)
        new = new.capitalize() if found[0][0].isupper() else new
        return _with_article(caption[: found.start()], new) + caption[found.end() :]

    return find


def _with_article(before: str, word: str) -> str:
    """A word behind what stands before it: "an elephant" becomes "a dog"."""
    if article := _ARTICLE.search(before):
        ending = "n" if word[0].lower() in "aeiou" else ""
        before = f"{before[: article.start()]}{article[1]}{ending} "
    return before + word


def _others(word: str, lists: Sequence[Sequence[Sequence[str]]], named: set[str]) -> list[str]:
    """What the word may be exchanged for. A plural is exchanged for a plural."""
    for groups in lists:
        for many in (False, True):
            own = next((group for group in groups if word in _forms(group, many=many)), None)
            if own is not None:
                return [
                    form
                    for group in groups
                    if group is not own
                    and not named & set(_forms(group, many=False))
                    and not named & set(_forms(group, many=True))
                    for form in _forms(group, many=many)
                    if _ending(form) == _ending(word)
                ]
    return []


def _forms(group: Sequence[str], *, many: bool) -> list[str]:
    return [_plural(word) for word in group] if many else list(group)


def _plural(word: str) -> str:
    if word.endswith(("s", "ch", "x")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2] not in "aeiou" else f"{word}s"


def _ending(word: str) -> str:
    """By which a form of a verb is told from others."""
    return "ing" if word.endswith("ing") else "s" if word.endswith("s") else ""


def _swapped(caption: str, _all: Sequence[str], _rng: random.Random) -> str | None:
    """The first two different nouns that the lists know change places."""
    nouns = [found for found in _WORD.finditer(caption) if found[0].lower() in _NOUNS]
    first = next(iter(nouns), None)
    second = next((each for each in nouns if first and each[0].lower() != first[0].lower()), None)
    if first is None or second is None:
        return None
    one, other = second[0].lower(), first[0].lower()
    if first[0][0].isupper():
        one = one.capitalize()
    head = _with_article(caption[: first.start()], one)
    between = _with_article(caption[first.end() : second.start()], other)
    return head + between + caption[second.end() :]


def _first_half(caption: str, _all: Sequence[str], _rng: random.Random) -> str | None:
    words = caption.split()
    return None if len(words) < _LEAST else " ".join(words[: len(words) // 2])


def _half_twice(caption: str, _all: Sequence[str], _rng: random.Random) -> str | None:
    """As long as the caption, by saying its first half again."""
    words = caption.split()
    if len(words) < _LEAST:
        return None
    return " ".join([*words[: len(words) // 2], *words[: len(words) - len(words) // 2]])


_PEOPLE = ("man", "woman", "boy", "girl", "child", "person", "lady", "men", "women", "people")
_NOUNS = frozenset(
    (*_PEOPLE, *(form for each in (*_ANIMALS, *_THINGS) for form in (*each, *map(_plural, each))))
)
FOILS: Mapping[str, Find] = {
    "noun exchanged": _exchange(_ANIMALS, _THINGS),
    "verb exchanged": _exchange(_VERBS),
    "colour exchanged": _exchange(_COLOURS),
    "number exchanged": _exchange(_NUMBERS),
    "relation exchanged": _exchange(_RELATIONS),
    "roles swapped": _swapped,
    "first half alone": _first_half,
    "first half twice": _half_twice,
}


def foils(
    caption: str, all_captions: Sequence[str], rng: random.Random
) -> Iterator[tuple[str, str]]:
    """The wrong captions for a caption, each with its kind. No caption of the image is one."""
    for kind, find in FOILS.items():
        wrong = find(caption, all_captions, rng)
        if wrong is not None and wrong not in all_captions:
            yield kind, wrong
