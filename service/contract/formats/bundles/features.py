"""The header of a bundle's features, read without their values."""

import os
import sys
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from pydantic import ValidationError

from service.contract import limits
from service.contract.errors import InvalidBundle, InvalidCheckpoint, RequestRefused
from service.contract.formats import safetensors_header, strict_json
from service.contract.formats.architectures import Inputs
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.formats.safetensors_header import TensorEntry
from service.contract.wording import count_noun

FEATURES = "features.safetensors"
COUNTS = "counts"
_COUNT_DTYPE, _COUNT_CODE = "U16", "H"
MAX_ENCODER_CHARACTERS = 10_000
MAX_HEADER_BYTES = 100_000_000  # 4 million image names of 20 characters
INPUT_TEXTS: Mapping[Inputs, str] = {
    "features": "one vector of each image",
    "grid": "features of a grid's places",
    "regions": "features of regions",
}


@dataclass(frozen=True)
class FeaturesHeader:
    ids: tuple[str, ...]  # image names in row order
    size: int  # of a vector: of an image, or of one of its places
    dtype: str
    encoder: FeatureEncoder
    data_start: int  # the first byte of `features` in the file
    inputs: Inputs = "features"
    places: int = 1  # of a row
    counts_start: int | None = None  # the first byte of `counts`, if there are some


def parse_features_header(stream: IO[bytes]) -> FeaturesHeader:
    file_bytes = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        header = safetensors_header.read_safetensors_header(stream, file_bytes, MAX_HEADER_BYTES)
        ids = _feature_ids(header.metadata)
    except InvalidCheckpoint as error:
        raise InvalidBundle(f"{FEATURES}: {error.detail}") from None
    inputs = _inputs(header.tensors)
    tensor, counts = header.tensors["features"], header.tensors.get(COUNTS)
    if tensor.dtype not in ("F16", "F32"):
        raise InvalidBundle(f"{FEATURES}: expected F16 or F32, found {tensor.dtype}")
    if len(ids) != tensor.shape[0]:
        raise InvalidBundle(
            f"{FEATURES}: {count_noun(tensor.shape[0], 'row')}, but `ids` names "
            f"{count_noun(len(ids), 'image')}"
        )
    return FeaturesHeader(
        ids,
        tensor.shape[-1],
        tensor.dtype,
        _encoder(header.metadata),
        header.data_start + tensor.start,
        inputs,
        _places(tensor.shape),
        None if counts is None else header.data_start + counts.start,
    )


def describe_other_inputs(expected: Inputs, found: Inputs) -> str:
    return f"the checkpoint takes {INPUT_TEXTS[expected]}, and the dataset has {INPUT_TEXTS[found]}"


def describe_other_size(expected: int, found: int) -> str:
    return f"the checkpoint expects image features of size {expected}, the dataset's have {found}"


def check_features_fit(header: FeaturesHeader, size: int, inputs: Inputs = "features") -> None:
    """Raise RequestRefused unless a model of these inputs, in vectors of `size`, can read them."""
    if header.inputs != inputs:
        raise RequestRefused(describe_other_inputs(inputs, header.inputs))
    if header.size != size:
        raise RequestRefused(describe_other_size(size, header.size))


def read_region_counts(stream: IO[bytes], header: FeaturesHeader) -> Sequence[int] | None:
    """Read how many regions each row has; None where no row says it."""
    if header.counts_start is None:
        return None
    found: array[int] = array(_COUNT_CODE)
    stream.seek(header.counts_start)
    found.frombytes(stream.read(len(header.ids) * found.itemsize))
    if sys.byteorder == "big":
        found.byteswap()
    return found


def check_region_counts(stream: IO[bytes], header: FeaturesHeader) -> None:
    """Raise InvalidBundle where a row has more regions than there are places."""
    for row, count in enumerate(read_region_counts(stream, header) or ()):
        if count > header.places:
            raise InvalidBundle(
                f"{FEATURES}: {COUNTS} of {header.ids[row]!r:.100}: expected at most "
                f"{header.places}, the places of a row, found {count}"
            )


def _inputs(tensors: Mapping[str, TensorEntry]) -> Inputs:
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    features = shapes.get("features", ())
    if 0 in features or len(features) not in (2, 3) or not set(shapes) <= {"features", COUNTS}:
        raise _unlike(shapes)
    if COUNTS not in shapes:
        return "features" if len(features) == 2 else "grid"
    if len(features) != 3 or shapes[COUNTS] != features[:1]:
        raise _unlike(shapes)
    if tensors[COUNTS].dtype != _COUNT_DTYPE:
        raise InvalidBundle(
            f"{FEATURES}: {COUNTS}: expected {_COUNT_DTYPE}, found {tensors[COUNTS].dtype}"
        )
    return "regions"


def _unlike(shapes: Mapping[str, tuple[int, ...]]) -> InvalidBundle:
    return InvalidBundle(
        f"{FEATURES}: expected one tensor `features` (N, D), or (N, P, D) of the P places of a "
        f"grid, or this and `{COUNTS}` (N) of images with up to P regions, found {shapes!s:.100}"
    )


def _places(shape: tuple[int, ...]) -> int:
    if len(shape) == 2:
        return 1
    places, size = shape[1:]
    if places > limits.PLACES or places * size > limits.PLACE_VALUES:
        raise InvalidBundle(
            f"{FEATURES}: expected at most {limits.PLACES} places of an image, and "
            f"{limits.PLACE_VALUES:,} values in all of them, found {places:,} of size {size:,}"
        )
    return places


def _feature_ids(metadata: dict[str, str]) -> tuple[str, ...]:
    text = _metadata(metadata, "ids")
    try:
        ids = safetensors_header.parse_string_list(text, limits.IMAGES)
    except strict_json.NotJson as error:
        raise InvalidBundle(f"{FEATURES}, ids{error.where}: {error}") from None
    if len(set(ids)) < len(ids):
        twice = next(name for name, times in Counter(ids).items() if times > 1)
        raise InvalidBundle(f"{FEATURES}: `ids` names an image twice: {twice!r:.100}")
    return tuple(ids)


def _encoder(metadata: dict[str, str]) -> FeatureEncoder:
    text = _metadata(metadata, "encoder")
    with suppress(strict_json.NotJson, ValidationError):
        if len(text) <= MAX_ENCODER_CHARACTERS:
            return FeatureEncoder.model_validate(strict_json.parse_json(text))
    raise InvalidBundle(
        f'{FEATURES}: `encoder` must be {{"name": "…", "digest": "…"}}, found {text!r:.100}'
    )


def _metadata(metadata: dict[str, str], name: str) -> str:
    if name not in metadata:
        raise InvalidBundle(f"{FEATURES}: metadata `{name}` is missing")
    return metadata[name]
