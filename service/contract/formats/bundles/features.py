"""The header of a bundle's features, read without their values."""

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from pydantic import ValidationError

from service.contract import limits
from service.contract.errors import InvalidBundle, InvalidCheckpoint
from service.contract.formats import safetensors_header, strict_json
from service.contract.formats.checkpoint_header import Encoder
from service.contract.wording import counted

FEATURES = "features.safetensors"
MAX_ENCODER_CHARACTERS = 10_000
MAX_HEADER_BYTES = 100_000_000  # 4 million image names of 20 characters


@dataclass(frozen=True)
class FeaturesHeader:
    ids: tuple[str, ...]  # image names in row order
    size: int
    dtype: str
    encoder: Encoder
    data_start: int  # the tensor's first byte in the file


def header_in(stream: IO[bytes]) -> FeaturesHeader:
    """The header of a features.safetensors."""
    file_bytes = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        header = safetensors_header.read(stream, file_bytes, MAX_HEADER_BYTES)
        ids = _feature_ids(header.metadata)
    except InvalidCheckpoint as error:
        raise InvalidBundle(f"{FEATURES}: {error.detail}") from None
    shape = {name: tensor.shape for name, tensor in header.tensors.items()}
    tensor = header.tensors.get("features")
    if len(shape) != 1 or tensor is None or len(tensor.shape) != 2 or 0 in tensor.shape:
        raise InvalidBundle(
            f"{FEATURES}: expected one tensor `features` (N, D), found {shape!s:.100}"
        )
    if tensor.dtype not in ("F16", "F32"):
        raise InvalidBundle(f"{FEATURES}: expected F16 or F32, found {tensor.dtype}")
    if len(ids) != tensor.shape[0]:
        raise InvalidBundle(
            f"{FEATURES}: {counted(tensor.shape[0], 'row')}, but `ids` names "
            f"{counted(len(ids), 'image')}"
        )
    return FeaturesHeader(
        ids, tensor.shape[1], tensor.dtype, _encoder(header.metadata), header.data_start
    )


def _feature_ids(metadata: dict[str, str]) -> tuple[str, ...]:
    text = _metadata(metadata, "ids")
    try:
        ids = safetensors_header.string_list(text, limits.IMAGES)
    except strict_json.NotJson as error:
        raise InvalidBundle(f"{FEATURES}, ids{error.where}: {error}") from None
    if len(set(ids)) < len(ids):
        twice = next(name for name, times in Counter(ids).items() if times > 1)
        raise InvalidBundle(f"{FEATURES}: `ids` names an image twice: {twice!r:.100}")
    return tuple(ids)


def _encoder(metadata: dict[str, str]) -> Encoder:
    text = _metadata(metadata, "encoder")
    with suppress(strict_json.NotJson, ValidationError):
        if len(text) <= MAX_ENCODER_CHARACTERS:
            return Encoder.model_validate(strict_json.parse(text))
    raise InvalidBundle(
        f'{FEATURES}: `encoder` must be {{"name": "…", "digest": "…"}}, found {text!r:.100}'
    )


def _metadata(metadata: dict[str, str], name: str) -> str:
    if name not in metadata:
        raise InvalidBundle(f"{FEATURES}: metadata `{name}` is missing")
    return metadata[name]
