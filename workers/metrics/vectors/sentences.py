"""Sentences as vectors: the mean of the vectors that a language model gives to their tokens.

They are pooled as sentence-transformers does: the tokens that the model puts before and after a
sentence count as well, and nothing is padded. Means and lengths are computed in float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from service.contract.errors import MetricFailed
from workers.files import tensor_files
from workers.metrics.ngrams import Ints
from workers.metrics.vectors.encoder import TextEncoder
from workers.metrics.vectors.reference_sets import collect, join_offsets, join_places
from workers.progress import Progress, ignore_progress

_FORMAT = "1"
_TENSORS = ("vectors", "sentences", "images")


@dataclass(frozen=True)
class Prepared:
    """References of a dataset version: `vectors` (S, H) holds every sentence once.

    sentences (C) i64: the place in `vectors` of each reference;  images (N+1) i64: image i has the
    references from images[i] to images[i+1] in `sentences`
    """

    model: str
    vectors: NDArray[np.float32]
    sentences: Ints
    images: Ints


def pool(
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
) -> Prepared:
    """Embed the references. Raises MetricFailed if an image has no reference."""
    texts, sentences, images = collect(references)
    return Prepared(encoder.name, pool(texts, encoder, progress=progress), sentences, images)


def join(parts: Sequence[Prepared]) -> Prepared:
    """The references of several parts, with their images one after another. A sentence of two
    parts is there twice, which does no harm.
    """
    sizes = [len(part.vectors) for part in parts]
    return Prepared(
        model=parts[0].model,
        vectors=np.concatenate([part.vectors for part in parts]),
        sentences=join_places([part.sentences for part in parts], sizes),
        images=join_offsets([part.images for part in parts]),
    )


def write(path: Path, prepared: Prepared) -> None:
    """Write the vectors of references as one safetensors file."""
    tensors = {name: getattr(prepared, name) for name in _TENSORS}
    tensor_files.write(
        path, tensors, {"prescore_reference_sentences": _FORMAT, "model": prepared.model}
    )


def read(path: Path) -> Prepared:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("prescore_reference_sentences") != _FORMAT:
                raise MetricFailed(f"expected vectors of references of format 1 in {path.name}")
            return Prepared(metadata["model"], *(file.get_tensor(name) for name in _TENSORS))
    except SafetensorError as error:
        raise MetricFailed(f"{path.name} holds no vectors of references: {error}") from None
