"""References as ids of a model's words or pieces of words, by its tokenisation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from service.contract.formats.checkpoint_header import EDGE, UNK
from service.contract.formats.vocabularies import MODEL_TOKENIZERS, ModelTokenizer


@dataclass(frozen=True)
class EncodedCaptions:
    """Captions as ids, of different lengths. Every caption ends with END, which counts.

    `tokens` int64 (T), caption c is tokens[caption_offsets[c]:caption_offsets[c + 1]];
    image i has the captions image_offsets[i] … image_offsets[i + 1] - 1. `start` is read before
    the first token of each. Where tokens are pieces, `word_offsets` int64 (W+1) says where the
    words of all captions begin, each END a word too, and where the last one ends; a part has none.
    """

    tokens: NDArray[np.int64]
    caption_offsets: NDArray[np.int64]
    image_offsets: NDArray[np.int64]
    start: int = EDGE
    word_offsets: NDArray[np.int64] | None = None

    @property
    def images(self) -> int:
        return len(self.image_offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.caption_offsets)

    @property
    def caption_images(self) -> NDArray[np.int64]:
        """The image of each caption."""
        return np.repeat(np.arange(self.images), np.diff(self.image_offsets))

    def whole_words(self, prefixes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of whole words within these many first tokens of each caption."""
        assert self.word_offsets is not None
        starts = self.caption_offsets[:-1]
        reached = np.searchsorted(self.word_offsets, starts + prefixes, side="right")
        return reached - np.searchsorted(self.word_offsets, starts, side="right")

    @property
    def words(self) -> NDArray[np.int64]:
        """The number of words of each caption."""
        return self.whole_words(self.lengths)

    def part(self, start: int, stop: int) -> "EncodedCaptions":
        """Only the images start … stop - 1."""
        captions = self.image_offsets[start : stop + 1]
        tokens = self.caption_offsets[captions[0] : captions[-1] + 1]
        return EncodedCaptions(
            self.tokens[tokens[0] : tokens[-1]],
            tokens - tokens[0],
            captions - captions[0],
            self.start,
        )

    def subset(self, captions: NDArray[np.int64]) -> "CaptionSubset":
        """Only these captions (ascending), and the images that have one of them."""
        images, counts = np.unique(self.caption_images[captions], return_counts=True)
        lengths = self.lengths[captions]
        offsets = _from_lengths(lengths)
        starts = self.caption_offsets[captions] - offsets[:-1]
        taken = np.arange(offsets[-1]) + np.repeat(starts, lengths)
        found = EncodedCaptions(self.tokens[taken], offsets, _from_lengths(counts), self.start)
        return CaptionSubset(found, images, taken)


@dataclass(frozen=True)
class CaptionSubset:
    """`captions` of a larger set; `images` and `tokens` are their indices in it, ascending."""

    captions: EncodedCaptions
    images: NDArray[np.int64]
    tokens: NDArray[np.int64]


def _from_lengths(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


class CaptionerTokens(Protocol):
    """A captioner's tokenisation: how captions become ids, and ids a caption."""

    @property
    def size(self) -> int:
        """All ids are below it."""
        ...

    @property
    def start(self) -> int:
        """Token that is read first; it may be the same id as `end`."""
        ...

    @property
    def end(self) -> int: ...

    @property
    def never(self) -> tuple[int, ...]:
        """Ids that stand for no word: a search writes them only where it is asked to."""
        ...

    @property
    def most(self) -> int | None:
        """Tokens that are read of one caption, START among them; None: any number."""
        ...

    def encode(self, references: Iterable[Sequence[str]]) -> EncodedCaptions:
        """A sequence of captions for each image; with `word_offsets` where ids are of pieces."""
        ...

    def text(self, ids: Sequence[int]) -> str:
        """A caption, of ids without END."""
        ...


@dataclass(frozen=True)
class WordTokens:
    """Words of a vocabulary. The first two are the edge token and UNK, unless a network's own ids
    of START, END and the unknown word are given.
    """

    vocabulary: Sequence[str]
    tokenizer: ModelTokenizer
    start: int = EDGE
    end: int = EDGE
    unknown: int = UNK
    most = None

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    @property
    def never(self) -> tuple[int, ...]:
        return (self.unknown,)

    @cached_property
    def _ids(self) -> Mapping[str, int]:
        special = (self.end, self.unknown)  # START may be a word, as it is in ONNX bundles
        return {word: at for at, word in enumerate(self.vocabulary) if at not in special}

    def encode(self, references: Iterable[Sequence[str]]) -> EncodedCaptions:
        """Words outside the vocabulary become the unknown one."""
        split = MODEL_TOKENIZERS[self.tokenizer]
        tokens: list[int] = []
        caption_offsets, image_offsets = [0], [0]
        for captions in references:
            for caption in captions:
                tokens.extend(self._ids.get(word, self.unknown) for word in split(caption))
                tokens.append(self.end)
                caption_offsets.append(len(tokens))
            image_offsets.append(len(caption_offsets) - 1)
        return EncodedCaptions(
            np.array(tokens, np.int64),
            np.array(caption_offsets, np.int64),
            np.array(image_offsets, np.int64),
            self.start,
        )

    def text(self, ids: Sequence[int]) -> str:
        return " ".join(self.vocabulary[at] for at in ids)


def encode_captions(
    references: Iterable[Sequence[str]], vocabulary: Sequence[str], tokenizer: ModelTokenizer
) -> EncodedCaptions:
    """Encode a sequence of captions for each image; words outside the vocabulary become UNK."""
    return WordTokens(vocabulary, tokenizer).encode(references)


def build_vocabulary(
    captions: Iterable[str], tokenizer: ModelTokenizer, at_least: int = 5
) -> tuple[str, ...]:
    """A vocabulary: the edge token, UNK, then the words seen at least so often, sorted."""
    split = MODEL_TOKENIZERS[tokenizer]
    counts: dict[str, int] = {}
    for caption in captions:
        for word in split(caption):
            counts[word] = counts.get(word, 0) + 1
    return ("<edge>", "<unk>", *sorted(word for word, seen in counts.items() if seen >= at_least))
