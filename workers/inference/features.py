"""Features of images, of a bundle or computed, read by image name; inputs of captioners."""

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
from service.contract.formats.architectures import Inputs as Kind
from service.contract.formats.bundles.features import (
    COUNTS,
    MAX_HEADER_BYTES,
    describe_other_inputs,
    read_region_counts,
)
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.wording import count_noun
from workers import tensor_files
from workers.inference import pictures
from workers.progress import Progress, ignore_progress

_UNDECODED = "undecoded"
_MOST_NAMED = 10
_BLOCK_VALUES = 1 << 22  # that are looked at together: 16 MB
_TYPES: Mapping[str, np.dtype[Any]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4")}


class Inputs(Protocol):
    """One row for each image: an array, or pictures that are read when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | NDArray[np.int64], /) -> Any: ...


@dataclass(frozen=True)
class ComputedFeatures:
    """Features that Prescore itself computed: a row for each image, and why a picture that could
    not be decoded has a row without numbers.
    """

    images: tuple[str, ...]
    rows: NDArray[np.float32]
    encoder: FeatureEncoder
    undecoded: Mapping[str, str]


def read_features(
    bundle: Path, images: Sequence[str], encoder: FeatureEncoder, kind: Kind = "features"
) -> Inputs:
    """Features in the order of `images`: (N, D), or (N, P, D) of places, which are read when they
    are asked for; a region that an image does not have is a row of NaN. CheckpointMismatch for
    another encoder or kind.
    """
    header = bundles.read_features_header(bundle)
    if header is None:
        raise UnusableDataset(
            f"expected {bundles.FEATURES} in the bundle: "
            "pre-gen scores and decoding need image features"
        )
    rows = np.array(_rows_of(header, images, encoder, kind), np.int64)
    with bundles.open_member(bundle, bundles.FEATURES) as stream:
        if kind == "features":
            return _finite(_rows(stream, header, rows), images)
        counts = read_region_counts(stream, header)
    there = np.full(len(rows), header.places) if counts is None else np.array(counts)[rows]
    return _PlaceFeatures(bundle, header, images, rows, there)


def read_computed_features(
    path: Path, images: Sequence[str], encoder: FeatureEncoder
) -> NDArray[np.float32]:
    """Read features from a file that Prescore computed; UnusableDataset names the first images
    whose pictures could not be decoded.
    """
    with path.open("rb") as stream:
        undecoded = _undecoded(stream)
        wrong = {image: undecoded[image] for image in images if image in undecoded}
        if wrong:
            raise pictures.build_undecoded_error(wrong)
        header = bundles.parse_features_header(stream)
        rows = _rows_of(header, images, encoder, "features")
        return _finite(_rows(stream, header, rows), images)


def read_features_file(path: Path) -> ComputedFeatures:
    """A file that `write_features_file` has written."""
    with path.open("rb") as stream:
        header, undecoded = bundles.parse_features_header(stream), _undecoded(stream)
        rows = _rows(stream, header, range(len(header.ids)))
    return ComputedFeatures(header.ids, rows, header.encoder, undecoded)


def write_features_file(path: Path, found: ComputedFeatures) -> None:
    notes = {_UNDECODED: json.dumps(found.undecoded)}
    write_features(path, found.images, found.rows, found.encoder, notes=notes)


def concatenate_features(parts: Sequence[ComputedFeatures]) -> ComputedFeatures:
    """Features of one encoder, in the order of the parts."""
    return ComputedFeatures(
        tuple(image for part in parts for image in part.images),
        np.concatenate([part.rows for part in parts]),
        parts[0].encoder,
        {image: why for part in parts for image, why in part.undecoded.items()},
    )


def _undecoded(stream: IO[bytes]) -> Mapping[str, str]:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    header = safetensors_header.read_safetensors_header(stream, size, MAX_HEADER_BYTES)
    found: Mapping[str, str] = json.loads(header.metadata[_UNDECODED])
    return found


@dataclass(frozen=True)
class _PlaceFeatures:
    """Rows are read when they are asked for: those of 5,000 images may take gigabytes."""

    bundle: Path
    header: bundles.FeaturesHeader
    images: Sequence[str]
    rows: NDArray[np.int64]
    counts: NDArray[Any]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice | NDArray[np.int64], /) -> NDArray[Any]:
        header, wanted = self.header, self.rows[rows]
        with bundles.open_member(self.bundle, bundles.FEATURES) as stream:
            found = _rows(stream, header, wanted).reshape(-1, header.places, header.size)
        there = np.arange(header.places) < self.counts[rows, None]
        found[~there] = 0.0  # whatever stands there
        images = [self.images[row] for row in np.arange(len(self))[rows]]
        _finite(found, images)
        found[~there] = np.nan
        return found


def _rows_of(
    header: bundles.FeaturesHeader, images: Sequence[str], encoder: FeatureEncoder, kind: Kind
) -> list[int]:
    """The rows of images; CheckpointMismatch for features of another kind or encoder."""
    if header.encoder != encoder:
        raise CheckpointMismatch(
            f"the checkpoint was trained on features of {encoder}, "
            f"the dataset has those of {header.encoder}"
        )
    if header.inputs != kind:
        raise CheckpointMismatch(describe_other_inputs(kind, header.inputs))
    row_of = {name: row for row, name in enumerate(header.ids)}
    missing = [name for name in images if name not in row_of]
    if missing:
        raise UnusableDataset(
            f"{len(missing)} of {count_noun(len(images), 'image')} "
            f"{'has' if len(missing) == 1 else 'have'} no features, "
            f"the first is {missing[0]!r:.100}"
        )
    return [row_of[name] for name in images]


def _finite(rows: NDArray[np.float32], images: Sequence[str]) -> NDArray[np.float32]:
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=tuple(range(1, rows.ndim))))
    if len(wrong):
        raise UnusableDataset(f"the features of {images[wrong[0]]!r:.100} are not finite numbers")
    return rows


def check_features(
    bundle: Path, splits: Mapping[str, Sequence[str]], progress: Progress = ignore_progress
) -> list[str]:
    """Check the features of all images of `splits`: UnusableDataset names, split by split, those
    that have none, and those whose features are not finite numbers, since every run on the split
    would fail. Returns the splits that have no features at all.
    """
    header = bundles.read_features_header(bundle)
    if header is None:
        return []
    ids = set(header.ids)
    none = [split for split, images in splits.items() if ids.isdisjoint(images)]
    odd = _not_finite(bundle, header, progress)
    wrong = []
    for split in (name for name in splits if name not in none):
        absent = [image for image in splits[split] if image not in ids]
        infinite = [image for image in splits[split] if image in odd]
        of = f"of {count_noun(len(splits[split]), 'image')}"
        if absent:
            wrong.append(f"{split}: {len(absent):,} {of} without features: {_named(absent)}")
        if infinite:
            told = f"{len(infinite):,} {of} with features that are not finite numbers"
            wrong.append(f"{split}: {told}: {_named(infinite)}")
    if wrong:
        raise UnusableDataset(f"{bundles.FEATURES}: {'; '.join(wrong)}")
    return none


def _named(images: Sequence[str]) -> str:
    more = f" and {len(images) - _MOST_NAMED:,} more" if len(images) > _MOST_NAMED else ""
    return f"{', '.join(f'{image!r:.100}' for image in images[:_MOST_NAMED])}{more}"


def _not_finite(bundle: Path, header: bundles.FeaturesHeader, progress: Progress) -> set[str]:
    """The images whose features are not finite numbers; of regions, those that an image has."""
    found: set[str] = set()
    step = max(1, _BLOCK_VALUES // (header.places * header.size))
    with bundles.open_member(bundle, bundles.FEATURES) as stream:
        counts = read_region_counts(stream, header)
        for start in range(0, len(header.ids), step):
            ids = header.ids[start : start + step]
            rows = _rows(stream, header, range(start, start + len(ids)))
            placed = rows.reshape(len(ids), header.places, header.size)
            if counts is not None:
                there = np.array(counts[start : start + step])
                placed[np.arange(header.places) >= there[:, None]] = 0.0  # whatever stands there
            found |= {ids[row] for row in np.flatnonzero(~np.isfinite(placed).all(axis=(1, 2)))}
            progress(start + len(ids), len(header.ids))
    return found


def check_features_size(rows: Inputs, expected: int, kind: Kind = "features") -> None:
    """Raise CheckpointMismatch unless they are features of the kind and the size that the
    checkpoint expects.
    """
    shape = np.shape(rows[:0])
    if len(shape) != (2 if kind == "features" else 3) or shape[-1] != expected:
        what = "image features" if kind == "features" else "features of places (N, P, D)"
        raise CheckpointMismatch(
            f"the checkpoint expects {what} of size {expected}, "
            f"the dataset's have shape {[len(rows), *shape[1:]]}"
        )


def write_features(
    path: Path,
    ids: Sequence[str],
    rows: NDArray[np.floating],
    encoder: FeatureEncoder,
    counts: NDArray[np.integer] | None = None,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write `features.safetensors`, completely or not at all. `rows`: (N, D), or (N, P, D) of
    places; `counts`: how many regions each image has, if they are regions; `notes`: more metadata.
    """
    assert rows.ndim == 3 if counts is not None else rows.ndim in (2, 3), rows.shape
    assert len(rows) == len(ids), (len(rows), len(ids))
    own = {"ids": json.dumps(list(ids)), "encoder": encoder.model_dump_json()}
    tensors: dict[str, NDArray[Any]] = {"features": rows}
    if counts is not None:
        assert counts.shape == (len(rows),), counts.shape
        assert counts.max(initial=0) <= rows.shape[1], (counts, rows.shape)
        tensors[COUNTS] = counts.astype(np.uint16)
    tensor_files.write_tensors(path, tensors, {**own, **(notes or {})})


def _rows(
    stream: IO[bytes], header: bundles.FeaturesHeader, wanted: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.float32]:
    """Read the wanted rows: (n, places * size)."""
    stored, values = _TYPES[header.dtype], header.places * header.size
    result = np.empty((len(wanted), values), np.float32)
    for position in np.argsort(wanted):
        stream.seek(header.data_start + int(wanted[position]) * values * stored.itemsize)
        raw = stream.read(values * stored.itemsize)
        result[position] = np.frombuffer(raw, stored)
    return result
