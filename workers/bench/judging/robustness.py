"""Pairs of a right caption and a wrong one. The word lists are English and small, and our own."""

import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workers.bench.judgements import JudgedPair, Judgements, RatedCaption
from workers.bench.judging import distractors

_WORD = re.compile(r"[A-Za-z]+")
_ARTICLE = re.compile(r"\b([Aa])n? $")
_LEAST = 6  # words of a caption of which half says something


def _split_groups(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(group.split()) for group in text.split(","))


# Words that may stand for each other are in one group: none of them is a foil for another.
_ANIMALS = _split_groups(
    "dog puppy, cat kitten, horse pony, cow bull, bird parrot pigeon, sheep lamb, elephant, bear, "
    "zebra, giraffe"
)
_THINGS = _split_groups(
    "ball football basketball soccer, frisbee disc, kite, umbrella parasol, guitar instrument, "
    "laptop computer, phone cellphone, book, pizza, cake, sandwich, banana, bicycle bike, "
    "car taxi, truck, bus, train, boat canoe kayak ship, plane airplane jet, motorcycle motorbike"
)
_COLOURS = _split_groups(
    "red, blue, green, yellow, orange, purple pink, brown tan, black, white, gray grey"
)
_NUMBERS = _split_groups("two couple pair, three, four, five, six")
_VERBS = _split_groups(
    "sitting seated sits sit, standing stands stand, running runs run, walking walks walk, "
    "jumping jumps jump leaping leaps, sleeping sleeps sleep lying laying lies, "
    "swimming swims swim, climbing climbs climb, eating eats eat, dancing dances dance"
)
_RELATIONS = _split_groups("under below beneath, on above over atop, behind, in")

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
    """List the words that may stand in its place. A plural is exchanged for a plural."""
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
    """Return the ending that distinguishes the forms of a verb."""
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
    """Repeat the first half of the caption in place of its second half."""
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


def make_foils(
    caption: str, all_captions: Sequence[str], rng: random.Random
) -> Iterator[tuple[str, str]]:
    """The wrong captions for a caption, each with its kind. No caption of the image is one."""
    for kind, find in FOILS.items():
        wrong = find(caption, all_captions, rng)
        if wrong is not None and wrong not in all_captions:
            yield kind, wrong


LONGER = "the longer of two people's"
MACHINES = "a person's against a machine's"
PEOPLE = frozenset({"human", "humans", "people", "person"})  # what a `system` is called

_MOST = 500  # tasks of a kind: an accuracy is known to .02 (a standard error)


@dataclass(frozen=True)
class ImageReferences:
    name: str
    captions: Sequence[str]
    machine: str | None = None  # a machine's caption


def list_images(judgements: Judgements) -> list[ImageReferences]:
    """A file's own reference sets, the largest of each image."""
    found: dict[str | tuple[str, ...], Sequence[str]] = {}
    lines: list[RatedCaption | JudgedPair] = [*judgements.rated, *judgements.pairs]
    for line in lines:
        key = line.image or tuple(sorted(line.references))
        if len(line.references) > len(found.get(key, ())):
            found[key] = line.references
    return [
        ImageReferences(key if isinstance(key, str) else f"references {at}", captions)
        for at, (key, captions) in enumerate(found.items(), 1)
    ]


def add_machine_captions(
    images: Sequence[ImageReferences], captions: Mapping[str, str]
) -> list[ImageReferences]:
    return [replace(image, machine=captions.get(image.name)) for image in images]


def make_robustness_pairs(
    images: Sequence[ImageReferences], seed: int, without: Collection[str] = ()
) -> list[JudgedPair]:
    """At most 500 pairs of each kind, of images in random order, one caption each. `without`: the
    kinds that the file itself has. In pairs of `LONGER` neither caption is worse: the longer one
    stands as preferred, and a metric that does not care for length chooses it in half of them.
    """
    rng = random.Random(seed)  # noqa: S311  no secret
    drawn = rng.sample(images, len(images))
    found: dict[str, list[JudgedPair]] = {}
    for pair in (*_distracting(drawn, seed), *_perturbed(drawn, rng)):
        kept = found.setdefault(str(pair.category), [])
        if len(kept) < _MOST and pair.category not in without:
            kept.append(pair)
    return [pair for pairs in found.values() for pair in pairs]


def pair_with_machines(judgements: Judgements) -> list[JudgedPair]:
    """People's captions beside machines' of the same image, where rated lines name a `system`."""
    people: dict[str, tuple[str, tuple[str, ...]]] = {}
    machines = []
    for line in judgements.rated:
        key = line.image or repr(sorted(line.references))
        if line.system is not None and line.system.lower() in PEOPLE:
            people.setdefault(key, (line.candidate, line.references))
        elif line.system is not None:
            machines.append((key, line))
    return [
        JudgedPair(references, person, line.candidate, "a", MACHINES, key)
        for key, line in machines
        if key in people
        for person, references in [people[key]]
        if person != line.candidate
    ][:_MOST]


def _distracting(images: Sequence[ImageReferences], seed: int) -> Iterator[JudgedPair]:
    """Make the pairs of `--distractors`, one caption of an image for each kind."""
    seen = set()
    sets, names = [image.captions for image in images], [image.name for image in images]
    for pair in distractors.make_distractors(sets, seed, names):
        if (pair.image, pair.category) not in seen:
            seen.add((pair.image, pair.category))
            yield pair


def _perturbed(images: Sequence[ImageReferences], rng: random.Random) -> Iterator[JudgedPair]:
    for image in images:
        seen = set()
        for place in rng.sample(range(len(image.captions)), len(image.captions)):
            caption = image.captions[place]
            others = (*image.captions[:place], *image.captions[place + 1 :])
            for kind, wrong in make_foils(caption, image.captions, rng) if others else ():
                if kind not in seen:
                    seen.add(kind)
                    yield JudgedPair(others, caption, wrong, "a", kind, image.name)
        yield from _longer(image)
        if image.machine is not None and len(image.captions) > 1:
            person, people = image.captions[0], tuple(image.captions[1:])
            if person != image.machine:
                yield JudgedPair(people, person, image.machine, "a", MACHINES, image.name)


def _longer(image: ImageReferences) -> Iterator[JudgedPair]:
    """The image's longest caption against its shortest, by the others."""
    ordered = sorted(image.captions, key=lambda text: len(text.split()))
    if len(ordered) > 2 and len(ordered[0].split()) < len(ordered[-1].split()):
        yield JudgedPair(tuple(ordered[1:-1]), ordered[-1], ordered[0], "a", LONGER, image.name)
