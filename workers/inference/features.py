"""What captioners look at; image features of a bundle, read by image name, never the whole file."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import CheckpointMismatch, UnusableDataset
from service.contract.formats import bundles
from service.contract.formats.checkpoint_header import Encoder
from service.contract.wording import counted
from workers.files import tensor_files

_TYPES: Mapping[str, np.dtype[Any]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4")}


class Inputs(Protocol):
    """One row for each image: an array, or pictures that are read when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | NDArray[np.int64], /) -> NDArray[Any]: ...


def read(bundle: Path, images: Sequence[str], encoder: Encoder) -> NDArray[np.float32]:
    """Features (N, D) in the order of `images`; CheckpointMismatch for another encoder."""
    header = bundles.read_features_header(bundle)
    if header is None:
        raise UnusableDataset(
            f"expected {bundles.FEATURES} in the bundle: "
            "pre-gen scores and decoding need image features"
        )
    if header.encoder != encoder:
        raise CheckpointMismatch(
            f"the checkpoint was trained on features of {encoder}, "
            f"the dataset has those of {header.encoder}"
        )
    row_of = {name: row for row, name in enumerate(header.ids)}
    missing = [name for name in images if name not in row_of]
    if missing:
        raise UnusableDataset(
            f"{len(missing)} of {counted(len(images), 'image')} "
            f"{'has' if len(missing) == 1 else 'have'} no features, "
            f"the first is {missing[0]!r:.100}"
        )
    rows = _rows(bundle, header, [row_of[name] for name in images])
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(wrong):
        raise UnusableDataset(f"the features of {images[wrong[0]]!r:.100} are not finite numbers")
    return rows


def check_size(rows: Inputs, expected: int) -> None:
    """Raise CheckpointMismatch unless they are features of the size that the checkpoint expects."""
    shape = np.shape(rows[:0])
    if len(shape) != 2 or shape[1] != expected:
        raise CheckpointMismatch(
            f"the checkpoint expects image features of size {expected}, "
            f"the dataset's have shape {[len(rows), *shape[1:]]}"
        )


def write(path: Path, ids: Sequence[str], rows: NDArray[np.floating], encoder: Encoder) -> None:
    """Write `features.safetensors`, completely or not at all."""
    assert rows.ndim == 2, rows.shape
    assert len(rows) == len(ids), (len(rows), len(ids))
    metadata = {"ids": json.dumps(list(ids)), "encoder": encoder.model_dump_json()}
    tensor_files.write(path, {"features": rows}, metadata)


def _rows(
    bundle: Path, header: bundles.FeaturesHeader, wanted: Sequence[int]
) -> NDArray[np.float32]:
    stored = _TYPES[header.dtype]
    result = np.empty((len(wanted), header.size), np.float32)
    with bundles.open_member(bundle, bundles.FEATURES) as stream:
        for position in np.argsort(wanted):
            stream.seek(header.data_start + wanted[position] * header.size * stored.itemsize)
            raw = stream.read(header.size * stored.itemsize)
            result[position] = np.frombuffer(raw, stored)
    return result
