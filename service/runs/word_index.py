"""Wording of an evaluation: how all its captions differ in words from the references of their
images.

It is counted once and kept, since captions and references never change.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock

from prescore.models.captions import CaptionWording, WordCount
from service.contract.errors import BlobDamaged, InvalidRequest
from service.runs import caption_words
from service.runs.scored_captions import ScoredCaptions

MOST_CHARACTERS = 20_000_000  # of captions and references: 64,000 images of COCO, in 5 s
_MOST_COUNTED = 200_000  # different words; the captions of COCO have 30,000
_MOST_FREQUENT = 10


@dataclass(frozen=True)
class WordingIndex:
    """`invented` and `missed`: words of each caption, in the order of the file, with blanks around
    each, so that one is found by a search in a text.
    """

    wording: CaptionWording
    invented: Sequence[str]
    missed: Sequence[str]


class WordingEntry:
    """A place of the cache: words are counted at the first request, and once for several at the
    same time.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._index: WordingIndex | None = None
        self._is_counted = False

    def get(self, found: ScoredCaptions) -> WordingIndex | None:
        with self._lock:
            if not self._is_counted:
                self._index = _count_words(found)
                self._is_counted = True
            return self._index


@lru_cache(maxsize=8)  # 0.3 MB each of 5,000 captions
def _find_entry(captions: Path, images: Path, number: int) -> WordingEntry:  # noqa: ARG001
    """The entry of these files, which are named by digests."""
    return WordingEntry()


def find_wording(found: ScoredCaptions) -> CaptionWording | None:
    """The wording of all captions; None where they are too many, or one cannot be read."""
    with suppress(BlobDamaged):
        index = _find_index(found)
        return None if index is None else index.wording
    return None


def filter_places(
    found: ScoredCaptions, places: Sequence[int], kind: str, word: str
) -> Sequence[int]:
    """The places of captions that have a word among those of this `kind`: invented or missed."""
    index = _find_index(found)
    if index is None:
        raise InvalidRequest(
            f"words are counted in captions and references of {MOST_CHARACTERS:,} characters at "
            f"most, and these have more: expected no `{kind}`",
            [(f"/query/{kind}", "expected none for this evaluation")],
        )
    if " " in word:
        return []
    texts = index.invented if kind == "invented" else index.missed
    text = f" {word.lower()} "
    return [at for at in places if text in texts[at]]


def _find_index(found: ScoredCaptions) -> WordingIndex | None:
    return _find_entry(found.path, found.split.path, found.split.number).get(found)


def _count_words(found: ScoredCaptions) -> WordingIndex | None:
    invented, missed = _WordLists(), _WordLists()
    characters = referenced = without_pair = copied = 0
    for caption, references in found.with_references():
        characters += len(caption) + sum(map(len, references))
        if characters > MOST_CHARACTERS:
            return None
        words = caption_words.compare_words(caption, references)
        invented.add(words.invented)
        missed.add(words.missed)
        if references:
            referenced += 1
            without_pair += not words.shares_pair
            copied += words.is_copied
    wording = CaptionWording(
        of=referenced,
        without_bigram=without_pair,
        copied=copied,
        invented=invented.list_most_frequent(),
        missed=missed.list_most_frequent(),
    )
    return WordingIndex(wording, invented.texts, missed.texts)


class _WordLists:
    """Words of each caption as a text, and the number of captions by word."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._counts: Counter[str] = Counter()

    def add(self, words: Sequence[str]) -> None:
        self.texts.append(f" {' '.join(words)} " if words else "")
        self._counts.update(words)
        if len(self._counts) > _MOST_COUNTED:  # of texts that are no captions: rare ones are left
            self._counts = Counter(dict(self._counts.most_common(_MOST_COUNTED // 2)))

    def list_most_frequent(self) -> list[WordCount]:
        order = sorted(self._counts.items(), key=lambda pair: (-pair[1], pair[0]))
        return [WordCount(word=word, captions=many) for word, many in order[:_MOST_FREQUENT]]
