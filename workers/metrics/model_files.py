"""Files of learned metrics: safetensors with a mark of the kind, a tokenizer, and `about`.
Users bring such files, so everything in them is checked.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from service.contract.errors import MetricFailed
from service.contract.formats.digests import compute_digest
from workers import tensor_files
from workers.metrics import marked_files
from workers.metrics.frequencies import DocumentFrequencies
from workers.metrics.marked_files import Tensors
from workers.metrics.tokens import SIGNATURES

T = TypeVar("T")
Restored = Callable[[Mapping[str, str], Tensors, str], T]  # metadata, tensors, SHA-256 -> a model

FORMAT = "1"
MOST_BYTES = 1 << 29  # the shipped ones have a few MB
_KEYS, _COUNTS = "frequencies/keys", "frequencies/counts"
TYPES: Mapping[str, str] = {_KEYS: "int64", _COUNTS: "uint32"}


def write_model_file(
    path: Path,
    mark: str,
    tensors: Tensors,
    counted: DocumentFrequencies,
    about: Mapping[str, Any],
    **metadata: str,
) -> None:
    """Write a model; equal content gives equal bytes."""
    tensors = {**tensors, _KEYS: counted.keys, _COUNTS: counted.counts.astype(np.uint32)}
    known = {
        mark: FORMAT,
        "tokenizer": counted.tokenizer,
        "images": str(counted.images),
        "about": json.dumps(about, sort_keys=True, ensure_ascii=False),
    }
    tensor_files.write_tensors(path, tensors, known | metadata)


def read_model_file(path: Path, mark: str, what: str, restored: Restored[T]) -> T:
    """Read a model as `read_marked_file` does; `restored` also gets the file's SHA-256."""
    _check_size(path, f"not {what}")
    return marked_files.read_marked_file(
        path,
        mark,
        FORMAT,
        what,
        lambda metadata, tensors: restored(
            metadata, tensors, compute_digest(path).removeprefix("sha256:")
        ),
    )


def read_marks(path: Path) -> frozenset[str]:
    """The names in a file's metadata, a mark among them if it is of a learned metric."""
    _check_size(path, "no file of a learned metric")
    try:
        with safe_open(path, framework="numpy") as file:
            return frozenset(file.metadata() or {})
    except (SafetensorError, OSError, ValueError) as error:
        raise MetricFailed(f"{path.name} is no file of a learned metric: {error}") from None


def _check_size(path: Path, complaint: str) -> None:
    size = path.stat().st_size if path.exists() else 0
    if size > MOST_BYTES:
        raise MetricFailed(
            f"{path.name} is {complaint}: expected at most {MOST_BYTES} bytes, found {size}"
        )


def check_type(name: str, values: NDArray[Any], expected: str | None) -> None:
    if expected is None:
        raise ValueError(f"found {name!r:.60}, which no learned metric has")
    if values.dtype.name != expected:
        raise ValueError(f"expected {name} of {expected}, found {values.dtype.name}")
    if not np.isfinite(values).all():
        raise ValueError(f"expected finite numbers in {name}")


def take_frequencies(
    metadata: Mapping[str, str], tensors: Tensors
) -> tuple[DocumentFrequencies, dict[str, Any]]:
    """Take document frequencies out of `tensors`; and `about`."""
    tokenizer, images = metadata["tokenizer"], int(metadata["images"])
    if tokenizer not in SIGNATURES:
        raise ValueError(
            f"expected a tokenizer of {', '.join(SIGNATURES)}, found {tokenizer!r:.60}"
        )
    about = json.loads(metadata["about"])
    if not isinstance(about, dict):
        raise TypeError(f"expected an object in about, found {about!r:.60}")
    keys, counts = tensors.pop(_KEYS), tensors.pop(_COUNTS)
    _check_frequencies(keys, counts, images)
    return DocumentFrequencies(tokenizer, images, keys, counts.astype(np.int64)), about


def _check_frequencies(keys: NDArray[Any], counts: NDArray[Any], images: int) -> None:
    if keys.ndim != 1 or keys.shape != counts.shape or (keys[1:] <= keys[:-1]).any():
        raise ValueError(
            f"expected a count for each of the sorted keys, found {keys.shape} and {counts.shape}"
        )
    if counts.max(initial=0) > images or counts.min(initial=2) < 2:
        raise ValueError(
            f"expected counts from 2 to {images} images, found {counts.min()} to {counts.max()}"
        )
