"""Tasks from reference sets: a person's caption beside one that is worse by construction, both with
the image's other captions as references.
"""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workers.analysis.judging import distractors
from workers.analysis.judging.robustness.foils import foils
from workers.files.judgements import Judgements, Pair, Rated

LONGER = "the longer of two people's"
MACHINES = "a person's against a machine's"
PEOPLE = frozenset({"human", "humans", "people", "person"})  # what a `system` is called

_MOST = 500  # tasks of a kind: an accuracy is known to .02 (a standard error)


@dataclass(frozen=True)
class Image:
    name: str
    captions: Sequence[str]
    machine: str | None = None  # a machine's caption


def images_of(judgements: Judgements) -> list[Image]:
    """A file's own reference sets, the largest of each image."""
    found: dict[str | tuple[str, ...], Sequence[str]] = {}
    lines: list[Rated | Pair] = [*judgements.rated, *judgements.pairs]
    for line in lines:
        key = line.image or tuple(sorted(line.references))
        if len(line.references) > len(found.get(key, ())):
            found[key] = line.references
    return [
        Image(key if isinstance(key, str) else f"references {at}", captions)
        for at, (key, captions) in enumerate(found.items(), 1)
    ]


def with_machines(images: Sequence[Image], captions: Mapping[str, str]) -> list[Image]:
    return [replace(image, machine=captions.get(image.name)) for image in images]


def make(images: Sequence[Image], seed: int, without: Collection[str] = ()) -> list[Pair]:
    """At most 500 pairs of each kind, of images in random order, one caption each. `without`: the
    kinds that the file itself has. In pairs of `LONGER` neither caption is worse: the longer one
    stands as preferred, and a metric that does not care for length chooses it in half of them.
    """
    rng = random.Random(seed)  # noqa: S311  no secret
    drawn = rng.sample(images, len(images))
    found: dict[str, list[Pair]] = {}
    for pair in (*_distracting(drawn, seed), *_perturbed(drawn, rng)):
        kept = found.setdefault(str(pair.category), [])
        if len(kept) < _MOST and pair.category not in without:
            kept.append(pair)
    return [pair for pairs in found.values() for pair in pairs]


def of_raters(judgements: Judgements) -> list[Pair]:
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
        Pair(references, person, line.candidate, "a", MACHINES, key)
        for key, line in machines
        if key in people
        for person, references in [people[key]]
        if person != line.candidate
    ][:_MOST]


def _distracting(images: Sequence[Image], seed: int) -> Iterator[Pair]:
    """As `--distractors` makes them, one caption of an image for each kind."""
    seen = set()
    sets, names = [image.captions for image in images], [image.name for image in images]
    for pair in distractors.make(sets, seed, names):
        if (pair.image, pair.category) not in seen:
            seen.add((pair.image, pair.category))
            yield pair


def _perturbed(images: Sequence[Image], rng: random.Random) -> Iterator[Pair]:
    for image in images:
        seen = set()
        for place in rng.sample(range(len(image.captions)), len(image.captions)):
            caption = image.captions[place]
            others = (*image.captions[:place], *image.captions[place + 1 :])
            for kind, wrong in foils(caption, image.captions, rng) if others else ():
                if kind not in seen:
                    seen.add(kind)
                    yield Pair(others, caption, wrong, "a", kind, image.name)
        yield from _longer(image)
        if image.machine is not None and len(image.captions) > 1:
            person, people = image.captions[0], tuple(image.captions[1:])
            if person != image.machine:
                yield Pair(people, person, image.machine, "a", MACHINES, image.name)


def _longer(image: Image) -> Iterator[Pair]:
    """The image's longest caption against its shortest, by the others."""
    ordered = sorted(image.captions, key=lambda text: len(text.split()))
    if len(ordered) > 2 and len(ordered[0].split()) < len(ordered[-1].split()):
        yield Pair(tuple(ordered[1:-1]), ordered[-1], ordered[0], "a", LONGER, image.name)
