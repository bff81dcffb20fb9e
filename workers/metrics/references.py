"""The reference side of the post-gen metrics, prepared once for a dataset version and split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed
from workers import tensor_files
from workers.metrics import ngrams
from workers.metrics.java.jvm import Jvm
from workers.metrics.marked_files import Tensors, read_marked_file
from workers.metrics.ngrams import Ints, NgramLevel, WordNumbers
from workers.metrics.tokens import SIGNATURES, Tokenizer, tokenize
from workers.progress import Progress, ignore_progress

_MARK, _FORMAT = "prescore_references", "2"
_SMALL = (np.uint8, np.uint16, np.uint32)


@dataclass(frozen=True, eq=False)
class PreparedReferences:
    """References as tokens, and their n-grams. Image i has the captions from offsets[i] to
    offsets[i + 1]. `tokens` are numbers of `words`, caption after caption.
    """

    tokenizer: Tokenizer
    words: Sequence[str]
    offsets: Ints
    tokens: Ints
    token_counts: Ints
    word_counts: Ints
    levels: tuple[NgramLevel, ...]

    @property
    def images(self) -> int:
        return len(self.offsets) - 1

    @property
    def signature(self) -> str:
        """Signature of the references: `refs:5|tok:ptb3.4.1`."""
        return f"{describe_counts(self.offsets)}|tok:{SIGNATURES[self.tokenizer]}"

    @cached_property
    def captions(self) -> tuple[tuple[str, ...], ...]:
        """Captions as tokens joined by blanks, image by image."""
        words = [self.words[number] for number in self.tokens.tolist()]
        ends = np.cumsum(self.token_counts).tolist()
        flat = [" ".join(words[start:end]) for start, end in pairwise([0, *ends])]
        return tuple(tuple(flat[start:end]) for start, end in pairwise(self.offsets.tolist()))

    @cached_property
    def numbers(self) -> WordNumbers:
        return WordNumbers(zip(self.words, range(len(self.words)), strict=True))


def describe_counts(offsets: Ints) -> str:
    """Describe how many references images have, or the least and the most: `refs:5`, `refs:3-7`."""
    counts = np.unique(np.diff(offsets)).tolist()
    return f"refs:{'-'.join(map(str, counts[:1] + counts[1:][-1:]))}"


def prepare_references(
    references: Sequence[Sequence[str]],
    tokenizer: Tokenizer,
    jvm: Jvm,
    *,
    progress: Progress = ignore_progress,
) -> PreparedReferences:
    """Prepare people's captions, image by image; MetricFailed if an image has none."""
    sizes = _sizes(references)
    tokens = tokenize(_flat(references), tokenizer, jvm, progress=progress)
    return _indexed(tokens, sizes, tokenizer)


def index_tokens(references: Sequence[Sequence[str]], tokenizer: Tokenizer) -> PreparedReferences:
    """Prepare references from captions that are tokens already, as `tokenize` makes them."""
    return _indexed(_flat(references), _sizes(references), tokenizer)


def _flat(references: Sequence[Sequence[str]]) -> list[str]:
    return [caption for captions in references for caption in captions]


def _sizes(references: Sequence[Sequence[str]]) -> Ints:
    for image, captions in enumerate(references):
        if not captions:
            raise MetricFailed(f"image {image}: expected at least one reference, found none")
    return np.array([len(captions) for captions in references], np.int64)


def _indexed(tokens: Sequence[str], sizes: Ints, tokenizer: Tokenizer) -> PreparedReferences:
    numbers = WordNumbers()
    encoded = ngrams.number_captions(tokens, numbers)
    return PreparedReferences(
        tokenizer=tokenizer,
        words=list(numbers),
        offsets=_offsets(sizes),
        tokens=encoded.tokens,
        token_counts=encoded.token_counts,
        word_counts=encoded.word_counts,
        levels=ngrams.index_references(encoded, np.repeat(np.arange(len(sizes)), sizes)),
    )


def write_references(path: Path, references: PreparedReferences) -> None:
    """Write the references as one safetensors file, each tensor in its smallest integer type."""
    tensors: Tensors = {
        # No token holds a blank; a lone surrogate is a word like any other.
        "words": np.frombuffer(" ".join(references.words).encode("utf-8", "surrogatepass"), "u1"),
        "captions": np.diff(references.offsets),
        "tokens": references.tokens,
        "token_counts": references.token_counts,
        "word_counts": references.word_counts,
    }
    for length, level in enumerate(references.levels, 1):
        first = references.offsets[level.images]  # reference of the image that holds each n-gram
        tensors |= {
            f"{length}/keys": level.keys,
            f"{length}/ngrams": level.ngrams,
            f"{length}/held": np.bincount(level.images, minlength=references.images),
            f"{length}/holders": np.diff(level.starts),
            f"{length}/owners": level.owners - np.repeat(first, np.diff(level.starts)),
            f"{length}/counts": level.counts,
        }
    metadata = {_MARK: _FORMAT, "tokenizer": references.tokenizer}
    tensor_files.write_tensors(
        path, {name: _small(values) for name, values in tensors.items()}, metadata
    )


def read_references(path: Path) -> PreparedReferences:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""
    return read_marked_file(path, _MARK, _FORMAT, "references", _restored)


def _restored(metadata: Mapping[str, str], found: Tensors) -> PreparedReferences:
    tokenizer = metadata["tokenizer"]
    if tokenizer not in SIGNATURES:
        raise ValueError(f"the tokenizer {tokenizer!r:.60} is not known")
    offsets = _offsets(found["captions"].astype(np.int64))
    levels = []
    for length in range(1, ngrams.LONGEST + 1):
        part = {name: found[f"{length}/{name}"] for name in ("keys", "ngrams", "held", "holders")}
        wide = {name: values.astype(np.int64) for name, values in part.items()}
        images = np.repeat(np.arange(len(offsets) - 1), wide["held"])
        first = np.repeat(offsets[images], wide["holders"])
        levels.append(
            NgramLevel(
                keys=wide["keys"],
                held=ngrams.pair_numbers(images, wide["ngrams"]),
                starts=_offsets(wide["holders"]),
                owners=first + found[f"{length}/owners"],
                counts=found[f"{length}/counts"],
            )
        )
    return PreparedReferences(
        tokenizer=tokenizer,
        words=found["words"].tobytes().decode("utf-8", "surrogatepass").split(" "),
        offsets=offsets,
        tokens=found["tokens"].astype(np.int64),
        token_counts=found["token_counts"].astype(np.int64),
        word_counts=found["word_counts"].astype(np.int64),
        levels=tuple(levels),
    )


def _offsets(sizes: Ints) -> Ints:
    return np.append(0, np.cumsum(sizes))


def _small(values: NDArray[Any]) -> NDArray[Any]:
    largest = values.max(initial=0)
    fitting = (kind for kind in _SMALL if largest <= np.iinfo(kind).max)
    return values.astype(next(fitting, np.int64))
