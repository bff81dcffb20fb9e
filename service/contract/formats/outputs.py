"""A captioner's outputs: errors are refused, odd captions get warnings."""

import math
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import Any

from service.contract.wording import count_noun

SEND_SUBSET = "; send `subset: true` to score a part"
MAX_WARNINGS = 1000  # of one file
_LISTED = 5  # unknown images that are told one by one
LONGEST_PARSED = 80  # words: a parser needs cubic time, 2 minutes for 200 words
_SEPARATORS = frozenset("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
UNKNOWN = frozenset({"unk", "<unk>", "[unk]", "<unknown>"})
_MUCH_UNKNOWN = 0.05  # of all words
_QUOTES_AND_DASHES = "\u2018\u2019\u201c\u201d\u00ab\u00bb\u2026\u2013\u2014"
_MARKS = str.maketrans(dict.fromkeys(string.punctuation + _QUOTES_AND_DASHES, " "))
_COPIED = 0.5  # of all captions; people seldom write the same caption twice
_SAME = 0.02  # different captions for each image; weak captioners have ten times as many
_VARIED, FEW = 0.5, 20  # references have half as many different texts, with at least 20 images

SPREAD = 1e-4  # of scores of single captions: those within it are the same to any reader


@dataclass(frozen=True)
class WordFinder:
    """A tokeniser by its name, and whether it finds words in a text."""

    tokenizer: str
    finds_words: Callable[[str], bool]


@dataclass(frozen=True)
class ArrangedCaptions:
    """`pairs` are (place in the split, caption) in the split's order; `problems` are (JSON pointer,
    what is wrong there). Where there are problems, there are no pairs.
    """

    pairs: Sequence[tuple[int, str]] = ()
    problems: Sequence[tuple[str, str]] = ()
    warnings: Sequence[Mapping[str, Any]] = field(default=())


def arrange_captions(
    given: Sequence[tuple[str, str]],
    places: Mapping[str, int],
    references: Sequence[Sequence[str]],
    of: str,
    *,
    subset: bool,
    reader: WordFinder | None = None,
    advice: str = SEND_SUBSET,
    named_by: Callable[[int], str] = lambda _: "image",
    item: Callable[[int], str] = lambda index: f"item {index + 1}",
) -> ArrangedCaptions:
    """Arrange captions in a split's order. `given`: (name or id of an image, caption); `of`: the
    split's name for messages; `advice`: how a part is scored, for the message that images have no
    caption; `named_by`: the field that names the image of an item, for pointers; `item`: how
    messages name an item; `reader`: the tokenizer of captions and references.
    """
    found: dict[int, int] = {}  # place -> index of its first caption
    problems: list[tuple[str, str]] = []
    unknown: list[int] = []
    for index, (image, _) in enumerate(given):
        place = places.get(image)
        if place is None:
            unknown.append(index)
            detail = f"{image!r:.100} is not an image of {of}"
            problems.append((f"/{index}/{named_by(index)}", detail))
        elif place in found:
            twice = f"image {image!r:.100} has a caption already, in {item(found[place])}"
            problems.append((f"/{index}/{named_by(index)}", twice))
        else:
            found[place] = index
    if len(unknown) > _LISTED:
        names = [given[index][0] for index in unknown]
        problems = [("", _unknown(names, len(given), places, of))]
    missing = len(references) - len(found)
    if missing and not problems and not subset:
        first = next(place for place in range(len(references)) if place not in found)
        absent = next(name for name, place in places.items() if place == first)
        of_all = f"{missing} of {count_noun(len(references), 'image')}"
        detail = f"{of_all} {'has' if missing == 1 else 'have'} no caption, the first is"
        problems.append(("", f"{detail} {absent!r:.100}{advice}"))
    if problems:
        return ArrangedCaptions(problems=problems)
    order = sorted(found)
    pairs = [(place, given[found[place]][1]) for place in order]
    images = [given[found[place]][0] for place in order]
    part = f"{len(found)} of {count_noun(len(references), 'image')}"
    warnings = [_warning("subset", part)] if missing else []
    warnings += islice(_warnings(pairs, images, references, reader), MAX_WARNINGS)
    return ArrangedCaptions(pairs=pairs, warnings=warnings)


def _unknown(names: Sequence[str], count: int, places: Mapping[str, int], of: str) -> str:
    """One sentence for many names that the split has not, with a name as it should be: the same
    without its folder and its ending, where there is one.
    """
    stems = {PurePosixPath(name).stem: name for name in reversed(names)}
    alike = (
        (stems[stem], known) for known in places if (stem := PurePosixPath(known).stem) in stems
    )
    name, known = next(alike, (names[0], next(iter(places))))
    return (
        f"{len(names)} of {count} captions name no image of {of}: found {name!r:.100}, "
        f"expected a name such as {known!r:.100}"
    )


def _warnings(
    pairs: Sequence[tuple[int, str]],
    images: Sequence[str],
    references: Sequence[Sequence[str]],
    reader: WordFinder | None,
) -> Iterator[dict[str, Any]]:
    """Warnings on all captions together, then on single captions."""
    captions = [caption for _, caption in pairs]
    empty: list[tuple[int, int, int]] = []  # place of a caption, its empty references, of all

    def seen() -> Iterator[Sequence[str]]:
        for at, (place, _) in enumerate(pairs):
            people = references[place]
            if blank := sum(not text.strip() for text in people):
                empty.append((at, blank, len(people)))
            yield people

    yield from _overall_warnings(captions, seen(), reader)
    for at, blank, count in empty:
        detail = f"{blank} of {count_noun(count, 'reference')} without words, which nothing matches"
        yield _warning("empty_references", detail, images[at])
    yield from _of_each(images, captions)


def _of_each(images: Sequence[str], captions: Sequence[str]) -> Iterator[dict[str, Any]]:
    for image, caption in zip(images, captions, strict=True):
        if not caption.strip():
            yield _warning("empty_caption", "it scores 0", image)
        elif not _SEPARATORS.isdisjoint(caption):
            detail = "a line separator inside; it is scored as a blank"
            yield _warning("line_separator", detail, image)
        elif control := _control(caption):
            detail = f"a control character inside (U+{ord(control):04X})"
            yield _warning("control_character", detail, image)
        elif len(words := caption.split()) > LONGEST_PARSED:
            detail = f"{len(words)} words; SPICE and SPIDEr read the first {LONGEST_PARSED}"
            yield _warning("long_caption", detail, image)


def _overall_warnings(
    captions: Sequence[str], references: Iterable[Sequence[str]], reader: WordFinder | None
) -> Iterator[dict[str, Any]]:
    """The references may be read from a file, so they are looked at once, one after the other."""
    if len(captions) == 1:
        yield _warning("one_image", "CIDEr-D of one image is 0 by construction")
    yield from _unknown_words(captions)
    copies, only = 0, set()  # captions that are references; the references of images with one
    alone = True
    unread, count = 0, 0  # references without words, and all
    neighbours = ShiftDetector(frozenset(_words(caption)) for caption in captions)
    for caption, people in zip(captions, references, strict=True):
        said, by_people = _words(caption), [_words(text) for text in people]
        unread, count = unread + _without_words(people, reader), count + len(people)
        copies += caption in people or said in by_people
        neighbours.look(frozenset(said), frozenset(chain.from_iterable(by_people)))
        alone = alone and len(people) == 1
        if alone:
            only.add(people[0])
    if reader is not None:
        of_captions = "caption", _without_words(captions, reader), len(captions)
        if warning := warn_of_no_words(reader.tokenizer, of_captions, ("reference", unread, count)):
            yield warning
    copied = copies / len(captions)
    if len(captions) < FEW:
        return
    if copied > _COPIED:
        detail = f"{copied:.0%} of the captions are references of their own image, word for word"
        yield _warning("captions_are_references", f"{detail}: are these a captioner's?")
    elif _are_few(len(captions), len(set(captions))):
        yield _all_alike(captions)
    elif alone and len(only) < _VARIED * len(set(captions)):
        # They look like captions: only one an image, and many the same.
        detail = "the references, one for each image, repeat themselves far more than the captions"
        yield _warning("perhaps_swapped", f"{detail}: have the two been swapped?")
    for side in neighbours.sides():
        detail = f"the captions fit the references of the image {side} theirs better than their own"
        yield _warning("captions_look_shifted", f"{detail}: are they shifted by one?")


def warn_of_captions(given: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Those warnings on (image, caption) pairs that need no references."""
    images, captions = [image for image, _ in given], [caption for _, caption in given]
    yield from _unknown_words(captions)
    if _are_few(len(captions), len(set(captions))):
        yield _all_alike(captions)
    yield from _of_each(images, captions)


def _unknown_words(captions: Sequence[str]) -> Iterator[dict[str, Any]]:
    words = [word for caption in captions for word in caption.casefold().split()]
    share = sum(word in UNKNOWN for word in words) / max(1, len(words))
    if share > _MUCH_UNKNOWN:
        yield _warning("many_unknown_words", f"{share:.0%} of all words are UNK")


def warn_of_unknown_words(odd: int, references: int) -> dict[str, Any] | None:
    """A warning where most references hold a word that a model does not know."""
    if odd <= references / 2:
        return None
    detail = (
        f"{odd:,} of {count_noun(references, 'reference')} hold UNK, so scores are mostly of "
        "unknown words: were they made words as in the model's training (small or capital letters, "
        "signs)?"
    )
    return _warning("many_unknown_words", detail)


def _all_alike(captions: Sequence[str]) -> dict[str, Any]:
    detail = _describe_few(len(captions), len(set(captions)))
    return _warning("few_distinct_captions", f"{detail}: are these all that was said?")


def _words(text: str) -> list[str]:
    """Nearly the words that metrics compare: those of PTB, without case and marks."""
    return text.lower().translate(_MARKS).split()


def _without_words(texts: Iterable[str], reader: WordFinder | None) -> int:
    """Count the texts that are not empty and in which a tokeniser finds no words."""
    if reader is None:
        return 0
    return sum(bool(text.strip()) and not reader.finds_words(text) for text in texts)


def warn_of_no_words(tokenizer: str, *sides: tuple[str, int, int]) -> dict[str, Any] | None:
    """A warning where a tokeniser finds no words in most texts of a side. `sides`: (what its texts
    are, how many are without words, how many there are).
    """
    found = [
        f"{count_noun(some, of)} of {count:,}" for of, some, count in sides if some > count / 2
    ]
    if not found:
        return None
    detail = (
        f"the tokenizer {tokenizer} finds no words in {' and '.join(found)}: it expects blanks "
        "between words, and metrics that compare words are 0 or nearly; split the words with "
        'blanks, and ask for the tokenizer "none"'
    )
    return _warning("no_words_found", detail)


def warn_of_few_captions(captions: int, distinct: int) -> dict[str, Any] | None:
    """A warning where a captioner says the same of nearly all images."""
    if not _are_few(captions, distinct):
        return None
    detail = (
        f"{_describe_few(captions, distinct)}: does the model see the images, and are their "
        "features those of its training (`normalize` in the checkpoint)?"
    )
    return _warning("few_distinct_captions", detail)


def _describe_few(captions: int, distinct: int) -> str:
    if distinct == 1:
        return f"one caption for all {captions} images"
    return f"{distinct} different captions for {captions} images"


def warn_of_flat_scores(metric: str, captions: int) -> dict[str, Any]:
    """A warning where a metric says the same of all captions."""
    detail = (
        f"all {captions:,} captions have the same {metric}, to within {SPREAD:g}: it cannot tell "
        "these captions apart, and neither its interval nor a comparison by it says anything"
    )
    return _warning("no_spread", detail)


def _are_few(captions: int, distinct: int) -> bool:
    return captions >= FEW and distinct <= max(1, _SAME * captions)


def _control(caption: str) -> str | None:
    if caption.isprintable():
        return None
    return next((c for c in caption if unicodedata.category(c) == "Cc" and c != "\t"), None)


def _warning(code: str, detail: str, image: str | None = None) -> dict[str, Any]:
    return {"code": code, "image": image, "detail": detail}


_FEWEST = 50  # images; of so many, one shifted part of 26 is not noticed
# 36 captioners and people on Flickr8k, Flickr30k and COCO fit a neighbour's references at most .43
# times as well as their own (.59 in parts of 100 images); shifted by one, at least 2.3 times (1.7).
_TIMES = 1.25
_SURE = 5.0  # standard errors


class ShiftDetector:
    """Detector of shifts: gets a split's captions first, then each image in the split's order."""

    def __init__(self, captions: Iterable[frozenset[str]]) -> None:
        """`captions`: the words of each; those that are in fewer captions weigh more."""
        counts: Counter[str] = Counter()
        self._images = 0
        for words in captions:
            counts.update(words)
            self._images += 1
        self._weights = {word: math.log(self._images / many) for word, many in counts.items()}
        self._before, self._after = _NeighbourFit(), _NeighbourFit()
        self._last: tuple[frozenset[str], frozenset[str], float] | None = None

    def look(self, caption: frozenset[str], references: frozenset[str]) -> None:
        """The words of the next image's caption and of all its references."""
        own = self._fit(caption, references)
        if self._last is not None:
            last_caption, last_references, last_own = self._last
            self._before.add(self._fit(caption, last_references), own)
            self._after.add(self._fit(last_caption, references), last_own)
        self._last = caption, references, own

    def sides(self) -> Iterator[str]:
        """On which side of theirs the images are to which the captions belong: none, or one."""
        if self._images >= _FEWEST:
            found = {"before": self._before, "after": self._after}
            yield from (side for side, beside in found.items() if beside.is_better)

    def _fit(self, caption: frozenset[str], references: frozenset[str]) -> float:
        return sum(map(self._weights.__getitem__, caption & references))


@dataclass
class _NeighbourFit:
    """Fit of captions to the images on one side of theirs, and to their own."""

    images: int = 0
    beside: float = 0.0
    own: float = 0.0
    squares: float = 0.0  # of the differences

    def add(self, beside: float, own: float) -> None:
        self.images += 1
        self.beside += beside
        self.own += own
        self.squares += (beside - own) ** 2

    @property
    def is_better(self) -> bool:
        more = self.beside - self.own
        variance = self.squares / self.images - (more / self.images) ** 2
        is_sure = more > _SURE * math.sqrt(max(0.0, variance) * self.images)
        return is_sure and self.beside > _TIMES * self.own
