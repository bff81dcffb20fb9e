"""Columns: the model's log-probability and rank of every reference token, stored for reuse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from service.contract.errors import InvalidColumns
from workers import tensor_files

_OF_TOKENS = ("logp", "rank", "caption_offsets", "image_offsets")
_TENSORS = (*_OF_TOKENS, "top_ids", "top_logp")
_WORDS = "word_offsets"  # where the pieces of each word begin


@dataclass(frozen=True)
class ProbabilityColumns:
    """T tokens (END included), C captions, N images; the k most probable words at each token.

    logp            (T)     f32  natural log-probability of the reference token
    rank            (T)     u16 or u32  number of words with a strictly larger logit
    caption_offsets (C+1)   i64  into tokens
    image_offsets   (N+1)   i64  into captions
    top_ids         (T, k)  u16 or u32;  top_logp (T, k) f32
    entropy         (T)     f32, nats; only if requested
    """

    logp: NDArray[np.float32]
    rank: NDArray[np.unsignedinteger]
    caption_offsets: NDArray[np.int64]
    image_offsets: NDArray[np.int64]
    top_ids: NDArray[np.unsignedinteger]
    top_logp: NDArray[np.float32]
    entropy: NDArray[np.float32] | None = None


def concatenate_columns(parts: Sequence[ProbabilityColumns]) -> ProbabilityColumns:
    """Join the columns of consecutive shards."""
    entropies = [part.entropy for part in parts if part.entropy is not None]
    return ProbabilityColumns(
        logp=np.concatenate([part.logp for part in parts]),
        rank=np.concatenate([part.rank for part in parts]),
        caption_offsets=_chained([part.caption_offsets for part in parts]),
        image_offsets=_chained([part.image_offsets for part in parts]),
        top_ids=np.concatenate([part.top_ids for part in parts]),
        top_logp=np.concatenate([part.top_logp for part in parts]),
        entropy=np.concatenate(entropies) if len(entropies) == len(parts) else None,
    )


def write_columns(
    path: Path, columns: ProbabilityColumns, metadata: Mapping[str, str] | None = None
) -> None:
    """Write a safetensors file, completely or not at all."""
    tensors = {name: getattr(columns, name) for name in _TENSORS}
    if columns.entropy is not None:
        tensors["entropy"] = columns.entropy
    tensor_files.write_tensors(path, tensors, metadata or {})


def read_columns(path: Path) -> tuple[ProbabilityColumns, dict[str, str]]:
    """Read columns and their metadata; InvalidColumns where the file is wrong."""
    tensors, metadata = _tensors(path, _TENSORS)
    return ProbabilityColumns(**tensors), metadata


def read_uploaded_columns(
    path: Path, units: str = "words"
) -> tuple[ProbabilityColumns, dict[str, str]]:
    """Read columns that somebody's own code computed, and their `tokenizer`; where tokens are
    pieces of words, also the `units`. Where they have no most probable words, k is 0.
    """
    tensors, metadata = _tensors(path, _OF_TOKENS)
    told = {"tokenizer": metadata["tokenizer"]}
    begins = tensors.pop(_WORDS, None)
    if begins is not None:
        told["units"] = units
        if units == "words":
            tensors = _of_words(tensors, begins)
        else:
            told["tokenizer"] = metadata["pieces"]
    return ProbabilityColumns(**{**_no_top(len(tensors["logp"])), **tensors}), told


def merge_word_pieces(columns: ProbabilityColumns, begins: NDArray[np.int64]) -> ProbabilityColumns:
    """Columns of words, of those of their pieces; `begins` says at which pieces words begin, and
    where the last one ends. Nobody knows the most probable words: k is 0.
    """
    found = _of_words(vars(columns), begins)
    return ProbabilityColumns(**found, **_no_top(len(found["logp"]), columns.top_ids.dtype))


def _no_top(tokens: int, index: Any = np.uint16) -> dict[str, Any]:
    return {"top_ids": np.empty((tokens, 0), index), "top_logp": np.empty((tokens, 0), np.float32)}


def _of_words(tensors: Mapping[str, Any], begins: NDArray[np.int64]) -> dict[str, Any]:
    """The product of the pieces' probabilities, and their greatest rank: a word is a hit where all
    its pieces are.
    """
    starts = begins[:-1]
    return {
        "logp": np.add.reduceat(tensors["logp"].astype(np.float64), starts).astype(np.float32),
        "rank": np.maximum.reduceat(tensors["rank"], starts),
        "caption_offsets": np.searchsorted(begins, tensors["caption_offsets"]).astype(np.int64),
        "image_offsets": tensors["image_offsets"],
    }


def _tensors(path: Path, needed: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        with safe_open(path, framework="numpy") as file:
            names = set(file.keys())
            missing = [name for name in needed if name not in names]
            if missing:
                raise InvalidColumns(f"expected the tensors {needed}, missing: {missing}")
            tensors = {
                name: file.get_tensor(name) for name in names & {*_TENSORS, _WORDS, "entropy"}
            }
            return tensors, file.metadata() or {}
    except SafetensorError as error:
        raise InvalidColumns(f"not a columns file: {error}") from None


def choose_index_type(vocabulary_size: int) -> type[np.uint16] | type[np.uint32]:
    return np.uint16 if vocabulary_size <= 2**16 else np.uint32


def _chained(offsets: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    steps = np.concatenate([np.diff(part) for part in offsets])
    return np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
