"""Sentences as vectors: the mean of the vectors that a language model gives to their tokens.

They are pooled as sentence-transformers does: the tokens that the model puts before and after a
sentence count as well, and nothing is padded. Means and lengths are computed in float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed
from workers import tensor_files
from workers.metrics.marked_files import read_marked_file
from workers.metrics.ngrams import Ints
from workers.metrics.vectors.text_encoder import TextEncoder
from workers.progress import Progress, ignore_progress

T = TypeVar("T")

_MARK, _FORMAT = "prescore_reference_sentences", "1"
_TENSORS = ("vectors", "sentences", "images")


@dataclass(frozen=True)
class SentenceReferences:
    """References of a dataset version: `vectors` (S, H) holds every sentence once.

    sentences (C) i64: the place in `vectors` of each reference;  images (N+1) i64: image i has the
    references from images[i] to images[i+1] in `sentences`
    """

    model: str
    vectors: NDArray[np.float32]
    sentences: Ints
    images: Ints


def pool_sentences(
    sentences: Sequence[str], encoder: TextEncoder, *, progress: Progress = ignore_progress
) -> NDArray[np.float32]:
    """A vector of length 1 for each sentence; zeros if it has no words."""
    ids = [np.array(encoding.ids, np.uint32) for encoding in encoder.encode(sentences)]
    vectors = np.zeros((len(ids), encoder.size), np.float32)
    for batch, states in encoder.states(ids, progress=progress):
        means = states.cpu().numpy().mean(axis=1, dtype=np.float64)
        vectors[batch] = means / np.linalg.norm(means, axis=1, keepdims=True)
    empty = [encoder.special.issuperset(tokens.tolist()) for tokens in ids]
    vectors[empty] = 0
    return vectors


def prepare(
    references: Sequence[Sequence[str]],
    encoder: TextEncoder,
    *,
    progress: Progress = ignore_progress,
) -> SentenceReferences:
    """Embed the references. Raises MetricFailed if an image has no reference."""
    texts, sentences, images = collect_references(references)
    return SentenceReferences(
        encoder.name, pool_sentences(texts, encoder, progress=progress), sentences, images
    )


def join(parts: Sequence[SentenceReferences]) -> SentenceReferences:
    """Join the references of several parts, with their images one after another."""
    sizes = [len(part.vectors) for part in parts]
    return SentenceReferences(
        model=parts[0].model,
        vectors=np.concatenate([part.vectors for part in parts]),
        sentences=join_places([part.sentences for part in parts], sizes),
        images=join_offsets([part.images for part in parts]),
    )


def write(path: Path, prepared: SentenceReferences) -> None:
    """Write the vectors of references as one safetensors file."""
    tensors = {name: getattr(prepared, name) for name in _TENSORS}
    tensor_files.write_tensors(path, tensors, {_MARK: _FORMAT, "model": prepared.model})


def read(path: Path) -> SentenceReferences:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""
    return read_marked_file(
        path,
        _MARK,
        _FORMAT,
        "vectors of references",
        lambda metadata, tensors: SentenceReferences(metadata["model"], **tensors),
    )


def list_distinct(texts: Sequence[T]) -> tuple[list[T], Ints]:
    """Every different text once, and the place of each text among them."""
    place_of = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return list(place_of), np.array([place_of[text] for text in texts], np.int64)


def collect_references(references: Sequence[Sequence[str]]) -> tuple[list[str], Ints, Ints]:
    """Every different reference once; `sentences` (C), the place of each reference among them; and
    `images` (N+1): image i has the references from images[i] to images[i+1] in `sentences`.

    Raises MetricFailed if an image has no reference.
    """
    for image, captions in enumerate(references):
        if not captions:
            raise MetricFailed(f"image {image}: expected at least one reference, found none")
    texts, sentences = list_distinct([caption for captions in references for caption in captions])
    return texts, sentences, np.array([0, *accumulate(map(len, references))], np.int64)


def join_places(parts: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    """The places of several parts, whose lists have these sizes, in the lists one after another."""
    before = np.cumsum([0, *sizes])[:-1]
    return np.concatenate([part + at for part, at in zip(parts, before, strict=True)])


def join_offsets(parts: Sequence[Ints]) -> Ints:
    """The offsets of several parts, one after another."""
    return np.append(0, np.cumsum(np.concatenate([np.diff(part) for part in parts])))
