"""What captioners look at; image features, of a bundle or computed, read by image name."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import CheckpointMismatch, UnusableDataset
from service.contract.formats import bundles, safetensors_header
from service.contract.formats.bundles.features import MAX_HEADER_BYTES
from service.contract.formats.checkpoint_header import Encoder
from service.contract.wording import counted
from workers.files import tensor_files
from workers.inference import pictures

_UNDECODED = "undecoded"
_TYPES: Mapping[str, np.dtype[Any]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4")}


class Inputs(Protocol):
    """One row for each image: an array, or pictures that are read when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | NDArray[np.int64], /) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Computed:
    """Features that Prescore itself computed: a row for each image, and why a picture that could
    not be decoded has a row without numbers.
    """

    images: tuple[str, ...]
    rows: NDArray[np.float32]
    encoder: Encoder
    undecoded: Mapping[str, str]


def read(bundle: Path, images: Sequence[str], encoder: Encoder) -> NDArray[np.float32]:
    """Features (N, D) in the order of `images`; CheckpointMismatch for another encoder."""
    header = bundles.read_features_header(bundle)
    if header is None:
        raise UnusableDataset(
            f"expected {bundles.FEATURES} in the bundle: "
            "pre-gen scores and decoding need image features"
        )
    with bundles.open_member(bundle, bundles.FEATURES) as stream:
        return _read(stream, header, images, encoder)


def read_computed(path: Path, images: Sequence[str], encoder: Encoder) -> NDArray[np.float32]:
    """The same of a file of features that Prescore computed; UnusableDataset names the first images
    whose pictures could not be decoded.
    """
    with path.open("rb") as stream:
        undecoded = _undecoded(stream)
        wrong = {image: undecoded[image] for image in images if image in undecoded}
        if wrong:
            raise pictures.unusable(wrong)
        return _read(stream, bundles.header_in(stream), images, encoder)


def read_whole(path: Path) -> Computed:
    """A file that `write_whole` has written."""
    with path.open("rb") as stream:
        header, undecoded = bundles.header_in(stream), _undecoded(stream)
        rows = _rows(stream, header, range(len(header.ids)))
    return Computed(header.ids, rows, header.encoder, undecoded)


def write_whole(path: Path, found: Computed) -> None:
    metadata = {_UNDECODED: json.dumps(found.undecoded)}
    _write(path, found.images, found.rows, found.encoder, metadata)


def concatenate(parts: Sequence[Computed]) -> Computed:
    """Features of one encoder, in the order of the parts."""
    return Computed(
        tuple(image for part in parts for image in part.images),
        np.concatenate([part.rows for part in parts]),
        parts[0].encoder,
        {image: why for part in parts for image, why in part.undecoded.items()},
    )


def _undecoded(stream: IO[bytes]) -> Mapping[str, str]:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    header = safetensors_header.read(stream, size, MAX_HEADER_BYTES)
    found: Mapping[str, str] = json.loads(header.metadata[_UNDECODED])
    return found


def _read(
    stream: IO[bytes], header: bundles.FeaturesHeader, images: Sequence[str], encoder: Encoder
) -> NDArray[np.float32]:
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
    rows = _rows(stream, header, [row_of[name] for name in images])
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
    _write(path, ids, rows, encoder, {})


def _write(
    path: Path,
    ids: Sequence[str],
    rows: NDArray[np.floating],
    encoder: Encoder,
    more: Mapping[str, str],
) -> None:
    assert rows.ndim == 2, rows.shape
    assert len(rows) == len(ids), (len(rows), len(ids))
    metadata = {"ids": json.dumps(list(ids)), "encoder": encoder.model_dump_json(), **more}
    tensor_files.write(path, {"features": rows}, metadata)


def _rows(
    stream: IO[bytes], header: bundles.FeaturesHeader, wanted: Sequence[int]
) -> NDArray[np.float32]:
    stored = _TYPES[header.dtype]
    result = np.empty((len(wanted), header.size), np.float32)
    for position in np.argsort(wanted):
        stream.seek(header.data_start + wanted[position] * header.size * stored.itemsize)
        raw = stream.read(header.size * stored.itemsize)
        result[position] = np.frombuffer(raw, stored)
    return result
