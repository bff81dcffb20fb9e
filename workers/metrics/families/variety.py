"""Captions without their references: how long, how varied, how many are training captions."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from workers import tensor_files
from workers.metrics import ngrams
from workers.metrics.family import FamilyMeasures, ScoringInput
from workers.metrics.ngrams import LONGEST, Ints, WordNumbers
from workers.metrics.tokens import SIGNATURES

Keys = NDArray[np.bytes_]
_KEY_BYTES = 16


@dataclass(frozen=True)
class CaptionVariety:
    """Variety of a set of captions. Tuples are of 1-, 2-, 3-, 4-grams. Entropies are in bits."""

    lengths: Ints  # of each caption
    known: NDArray[np.bool_] | None  # which captions equal a training caption
    vocabulary: int
    distinct: tuple[int, ...]
    distinct_share: tuple[float, ...]  # of all n-grams that occur
    entropy: tuple[float, ...]

    @property
    def mean_length(self) -> float:
        return float(self.lengths.mean())


def measure_variety(captions: Sequence[str], training: Keys | None = None) -> CaptionVariety:
    """Measure captions (tokens); `training`: keys of training captions by the same tokeniser."""
    encoded = ngrams.number_captions(captions, WordNumbers())
    counts = [np.bincount(found) for found in _numbered(encoded.words, encoded.word_counts)]
    known = None if training is None else np.isin(_keys(captions), training)
    return CaptionVariety(
        lengths=encoded.word_counts,
        known=known,
        vocabulary=len(counts[0]),
        distinct=tuple(len(each) for each in counts),
        distinct_share=tuple(len(each) / max(1, int(each.sum())) for each in counts),
        entropy=tuple(map(_entropy, counts)),
    )


def measure(task: ScoringInput) -> FamilyMeasures:
    """Variety as scores: counts of all captions, which cannot be summed up from parts."""
    found = measure_variety(task.captions, task.tools.get("training"))
    corpus = {"caption_length": found.mean_length, "words_used": float(found.vocabulary)}
    corpus |= {f"distinct_{n}": share for n, share in enumerate(found.distinct_share, 1)}
    corpus |= {f"entropy_{n}": bits for n, bits in enumerate(found.entropy[:2], 1)}
    captions = {"caption_length": found.lengths.astype(np.float64)}
    if found.known is not None:
        captions["from_training"] = found.known.astype(np.float64)
        corpus["from_training"] = float(found.known.mean())
    return FamilyMeasures(captions, {}, corpus)


def against(task: ScoringInput) -> str:
    return f"n={len(task.captions)}"


def recipe(task: ScoringInput) -> str:
    assert task.tokenizer is not None
    return f"tok:{SIGNATURES[task.tokenizer]}"


def make_keys(captions: Iterable[str]) -> Keys:
    """The keys of different captions, 16 bytes each, in the keys' order."""
    return np.unique(_keys(captions))


def write_keys(path: Path, found: Keys) -> None:
    """Write keys as one safetensors file."""
    tensors = {"keys": found.view("u1").reshape(len(found), -1)}
    tensor_files.write_tensors(path, tensors, {"prescore_training": "1"})


def read_keys(path: Path) -> Keys:
    found = load_file(path)["keys"]
    return found.reshape(-1).view(f"S{found.shape[1]}")


def _keys(captions: Iterable[str]) -> Keys:
    found = b"".join(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()
        for text in captions
    )
    return np.frombuffer(found, f"S{_KEY_BYTES}")


def _numbered(words: Ints, word_counts: Ints) -> list[Ints]:
    """Number the n-grams of each length at every place."""
    found: list[Ints] = []

    def number(_: int, keys: Ints) -> tuple[Ints, Ints]:
        table, numbers = np.unique(keys, return_inverse=True)
        found.append(numbers)
        return numbers, table

    assert sum(1 for _ in ngrams.count_ngrams(words, word_counts, number)) == LONGEST
    return found


def _entropy(counts: Ints) -> float:
    share = counts / max(1, int(counts.sum()))
    return float(-(share * np.log2(share)).sum())
