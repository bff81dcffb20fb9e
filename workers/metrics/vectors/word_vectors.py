"""Word vectors in our own format, looked up without loading the file: GoogleNews takes 3.6 GB.

vectors (V, D) f32   as in the file that they came from, in its order
keys    (V, 2) i64   BLAKE2b-128 of every word's UTF-8, sorted
rows    (V)    u32   the row in `vectors` of each key's word
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import InvalidCheckpoint, MetricFailed
from service.contract.formats import safetensors_header
from workers import tensor_files

_FORMAT = "1"
_KEY_BYTES = 16
_TYPES: Mapping[str, np.dtype[Any]] = {
    "vectors": np.dtype("<f4"),
    "keys": np.dtype("<i8"),
    "rows": np.dtype("<u4"),
}


@dataclass(frozen=True)
class WordVectors:
    """Word vectors; `source` is the SHA-256 of the file that they came from."""

    source: str
    vectors: NDArray[np.float32]
    keys: NDArray[np.int64]
    rows: NDArray[np.uint32]

    def find(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The row of each word; -1 for a word that has no vector."""
        keys = b"".join(hash_word(word.encode("utf-8", "surrogatepass")) for word in words)
        wanted = np.frombuffer(keys, "<i8").reshape(-1, 2)
        first, second = wanted[:, 0], wanted[:, 1].tolist()
        starts = np.searchsorted(self.keys[:, 0], first).tolist()
        ends = np.searchsorted(self.keys[:, 0], first, side="right").tolist()
        found = np.full(len(words), -1, np.int64)
        for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
            same = np.flatnonzero(self.keys[start:end, 1] == second[place])
            if len(same):
                found[place] = self.rows[start + same[0]]
        return found


def collect_vectors(source: str, vectors: NDArray[np.float32], keys: bytes) -> WordVectors:
    """Word vectors with the keys of all rows. Where keys are equal, the first one counts."""
    both = np.frombuffer(keys, "<i8").reshape(-1, 2)
    order = np.lexsort((both[:, 1], both[:, 0]))
    return WordVectors(source, vectors, both[order], order.astype(np.uint32))


def hash_word(word: bytes) -> bytes:
    return hashlib.blake2b(word, digest_size=_KEY_BYTES).digest()


def write_word_vectors(path: Path, found: WordVectors) -> None:
    tensors = {name: getattr(found, name) for name in _TYPES}
    metadata = {"prescore_word_vectors": _FORMAT, "source": found.source}
    tensor_files.write_tensors(path, tensors, metadata)


def read_word_vectors(path: Path) -> WordVectors:
    """Map a file into memory: only words asked for are read. MetricFailed if it is none."""
    try:
        with path.open("rb") as stream:
            header = safetensors_header.read_safetensors_header(stream, path.stat().st_size)
    except InvalidCheckpoint as error:
        raise MetricFailed(f"{path.name} is not a file of word vectors: {error}") from None
    of_ours = header.metadata.get("prescore_word_vectors") == _FORMAT
    if not of_ours or set(header.tensors) != set(_TYPES):
        raise MetricFailed(f"expected word vectors of format {_FORMAT} in {path.name}")
    parts: dict[str, NDArray[Any]] = {}
    for name, dtype in _TYPES.items():
        tensor = header.tensors[name]
        if 0 in tensor.shape or tensor.end - tensor.start != _bytes(tensor.shape, dtype):
            raise MetricFailed(f"expected {name} of {dtype} in {path.name}, found {tensor.dtype}")
        offset = header.data_start + tensor.start
        parts[name] = np.memmap(path, dtype, mode="r", offset=offset, shape=tensor.shape)
    found = WordVectors(header.metadata.get("source", ""), **parts)
    _check(found, path)
    return found


def _bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return int(np.prod(shape, dtype=object)) * dtype.itemsize


def _check(found: WordVectors, path: Path) -> None:
    count = len(found.vectors)
    shapes = (found.vectors.ndim, found.keys.shape, found.rows.shape)
    if shapes != (2, (count, 2), (count,)):
        raise MetricFailed(
            f"{path.name}: expected a key and a row for each of {count} vectors, "
            f"found shapes {found.keys.shape} and {found.rows.shape}"
        )
    if found.rows.max() >= count:
        raise MetricFailed(
            f"{path.name}: expected rows of {count} vectors, found row {found.rows.max()}"
        )
