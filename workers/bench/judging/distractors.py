"""Tasks that a metric should solve: a correct caption against one that is wrong in one respect,
both with the image's other captions as references. Rules make them from a dataset, so that users
can take their own; the wrong person or place is one that none of the image's captions names.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workers.bench.judgements import JudgedPair
from workers.bench.judging import phrases
from workers.bench.judging.phrases import CaptionPhrase

_TRIES = 50  # to draw a phrase that fits; most fit at once
_REST = 3  # characters: a caption that is hardly longer than its phrase makes no task
_SEXES = frozenset({"male", "female"})


@dataclass(frozen=True)
class _ParsedCaption:
    text: str
    image: int
    found: Mapping[str, CaptionPhrase | None]  # by kind: person, scene


_KINDS: Mapping[str, Callable[[str], CaptionPhrase | None]] = {
    "person": phrases.find_person,
    "scene": phrases.find_scene,
}
CATEGORIES = tuple(f"{rule}-{kind}" for rule in ("replace", "share", "just") for kind in _KINDS)


def make_distractors(
    reference_sets: Sequence[Sequence[str]], seed: int, names: Sequence[str] | None = None
) -> Iterator[JudgedPair]:
    """Pair captions with distractors of every category that has one. `names`: of the images."""
    images = [
        [
            _ParsedCaption(text, image, {kind: find(text) for kind, find in _KINDS.items()})
            for text in texts
        ]
        for image, texts in enumerate(reference_sets)
    ]
    rules = [_DistractorRules(images, kind) for kind in _KINDS]
    rng = random.Random(seed)  # noqa: S311  no secret
    named: Sequence[str | None] = names or [None] * len(images)
    for image, captions in zip(named, images, strict=True):
        for place, caption in enumerate(captions):
            others = tuple(other.text for other in captions[:place] + captions[place + 1 :])
            for each in rules if others else ():
                for category, wrong in each.distractors(caption, rng):
                    yield replace(_pair(category, caption.text, wrong, others, rng), image=image)


def _pair(
    category: str, right: str, wrong: str, others: tuple[str, ...], rng: random.Random
) -> JudgedPair:
    """Make a pair; chance decides whether the right caption is `a` or `b`."""
    if rng.random() < 0.5:
        return JudgedPair(others, right, wrong, "a", category)
    return JudgedPair(others, wrong, right, "b", category)


class _DistractorRules:
    """The three rules for one kind of phrase."""

    def __init__(self, images: Sequence[Sequence[_ParsedCaption]], kind: str) -> None:
        self._kind = kind
        self._by_slot: dict[str, list[CaptionPhrase]] = {}
        self._by_text: dict[str, list[_ParsedCaption]] = {}
        for caption in (caption for captions in images for caption in captions):
            if phrase := caption.found[kind]:
                self._by_slot.setdefault(phrase.slot, []).append(phrase)
                self._by_text.setdefault(phrase.text.lower(), []).append(caption)
        self._taken = [_excluded(kind, captions) for captions in images]

    def distractors(self, caption: _ParsedCaption, rng: random.Random) -> Iterator[tuple[str, str]]:
        """The wrong captions for a caption, each with its category."""
        phrase = caption.found[self._kind]
        if phrase is None:
            return
        if other := self._other(caption, phrase, rng):
            yield f"replace-{self._kind}", _replaced(caption.text, phrase, other.text)
        if sharing := self._sharing(caption, phrase, rng):
            yield f"share-{self._kind}", sharing.text
        if len(caption.text) > len(phrase.text) + _REST:
            yield f"just-{self._kind}", phrase.text

    def _other(
        self, caption: _ParsedCaption, phrase: CaptionPhrase, rng: random.Random
    ) -> CaptionPhrase | None:
        taken = self._taken[caption.image]
        fitting = self._by_slot[phrase.slot]
        drawn = (rng.choice(fitting) for _ in range(_TRIES))
        return next((each for each in drawn if each.groups.isdisjoint(taken)), None)

    def _sharing(
        self, caption: _ParsedCaption, phrase: CaptionPhrase, rng: random.Random
    ) -> _ParsedCaption | None:
        same = self._by_text[phrase.text.lower()]
        drawn = (rng.choice(same) for _ in range(_TRIES))
        return next((each for each in drawn if each.image != caption.image), None)


def _excluded(kind: str, captions: Sequence[_ParsedCaption]) -> frozenset[str]:
    """The groups that cannot be distractors for an image: those that its captions name. For people,
    these are also "anyone", and both sexes if no caption names one.
    """
    named = frozenset().union(*(phrases.find_groups(each.text, kind) for each in captions))
    if kind == "scene":
        return named
    return named | {"anyone"} if named & _SEXES else named | {"anyone"} | _SEXES


def _replaced(text: str, phrase: CaptionPhrase, other: str) -> str:
    first = other[0].upper() if phrase.text[0].isupper() else other[0].lower()
    return text[: phrase.start] + first + other[1:] + text[phrase.end :]
