"""References as word ids, by a model's tokeniser and vocabulary."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.contract.formats.checkpoint_header import EDGE, UNK
from service.contract.formats.words import TOKENIZERS, Tokenizer


@dataclass(frozen=True)
class Encoded:
    """Captions as word ids, of different lengths. Every caption ends with END, which counts.

    `tokens` int64 (T), caption c is tokens[caption_offsets[c]:caption_offsets[c + 1]];
    image i has the captions image_offsets[i] … image_offsets[i + 1] - 1.
    """

    tokens: NDArray[np.int64]
    caption_offsets: NDArray[np.int64]
    image_offsets: NDArray[np.int64]

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

    def part(self, start: int, stop: int) -> "Encoded":
        """Only the images start … stop - 1."""
        captions = self.image_offsets[start : stop + 1]
        tokens = self.caption_offsets[captions[0] : captions[-1] + 1]
        return Encoded(
            self.tokens[tokens[0] : tokens[-1]], tokens - tokens[0], captions - captions[0]
        )

    def subset(self, captions: NDArray[np.int64]) -> "Subset":
        """Only these captions (ascending), and the images that have one of them."""
        images, counts = np.unique(self.caption_images[captions], return_counts=True)
        lengths = self.lengths[captions]
        offsets = _from_lengths(lengths)
        starts = self.caption_offsets[captions] - offsets[:-1]
        taken = np.arange(offsets[-1]) + np.repeat(starts, lengths)
        return Subset(Encoded(self.tokens[taken], offsets, _from_lengths(counts)), images, taken)


@dataclass(frozen=True)
class Subset:
    """`captions` of a larger set; `images` and `tokens` are their indices in it, ascending."""

    captions: Encoded
    images: NDArray[np.int64]
    tokens: NDArray[np.int64]


def _from_lengths(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def encode(
    references: Iterable[Sequence[str]], vocabulary: Sequence[str], tokenizer: Tokenizer
) -> Encoded:
    """Encode a sequence of captions for each image; words outside the vocabulary become UNK."""
    split = TOKENIZERS[tokenizer]
    ids = {word: index for index, word in enumerate(vocabulary) if index > UNK}
    tokens: list[int] = []
    caption_offsets, image_offsets = [0], [0]
    for captions in references:
        for caption in captions:
            tokens.extend(ids.get(word, UNK) for word in split(caption))
            tokens.append(EDGE)
            caption_offsets.append(len(tokens))
        image_offsets.append(len(caption_offsets) - 1)
    return Encoded(
        np.array(tokens, np.int64),
        np.array(caption_offsets, np.int64),
        np.array(image_offsets, np.int64),
    )


def build(captions: Iterable[str], tokenizer: Tokenizer, at_least: int = 5) -> tuple[str, ...]:
    """A vocabulary: the edge token, UNK, then the words seen at least so often, sorted."""
    split = TOKENIZERS[tokenizer]
    counts: dict[str, int] = {}
    for caption in captions:
        for word in split(caption):
            counts[word] = counts.get(word, 0) + 1
    return ("<edge>", "<unk>", *sorted(word for word, seen in counts.items() if seen >= at_least))
