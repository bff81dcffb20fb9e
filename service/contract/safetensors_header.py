"""Reads and judges the header of a safetensors file, with the standard library alone.

The bytes are hostile. Sizes are capped and structure is counted *before* anything is parsed, so
that refusing costs little: under a second and under 64 MB, whatever the file claims. What is
accepted here is accepted by the official library too; the reverse need not hold.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from service.contract import strict_json
from service.contract.errors import (
    HeaderMalformed,
    HeaderTooLarge,
    HeaderTruncated,
    TensorLayout,
)

MAX_HEADER_BYTES = 4_000_000  # 280,000 words of 9 letters; the official library takes 100 MB
MAX_STRUCTURE = 20_000  # braces, commas, digits … outside strings: a canonical one has some 700
DTYPE_BYTES: Mapping[str, int] = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


@dataclass(frozen=True)
class TensorEntry:
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class SafetensorsHeader:
    metadata: dict[str, str]
    tensors: dict[str, TensorEntry]
    data_start: int


def read(
    stream: IO[bytes], file_bytes: int, max_header_bytes: int = MAX_HEADER_BYTES
) -> SafetensorsHeader:
    """Reads no more than the header from `stream`; `file_bytes` is the whole file's length."""
    raw = _header_bytes(stream, file_bytes, max_header_bytes)
    _check_structure(raw)
    text = _decoded(raw)
    header = _json(text)
    if not isinstance(header, dict):
        raise HeaderMalformed("the header must be a JSON object")
    metadata = _metadata(header.pop("__metadata__", {}))
    tensors = {name: _tensor(name, entry) for name, entry in header.items()}
    data_start = 8 + len(raw)
    _check_layout(tensors, file_bytes - data_start)
    return SafetensorsHeader(metadata, tensors, data_start)


def outside_strings(text: bytes, max_strings: int) -> bytes:
    """What JSON text holds outside its string literals: its structure, numbers and words.

    JSON costs memory by structure, not by length, so this is looked at before parsing.
    """
    bare = text.replace(rb"\\", b"").replace(rb"\"", b"")
    strings = bare.count(b'"') // 2
    if strings > max_strings:
        raise HeaderTooLarge(f"{strings} strings, at most {max_strings} are accepted")
    return b"".join(bare.split(b'"')[::2])


def _header_bytes(stream: IO[bytes], file_bytes: int, max_bytes: int) -> bytes:
    prefix = stream.read(8)
    if len(prefix) < 8:
        raise HeaderTruncated(
            f"expected a safetensors file (8 bytes of header length), found {len(prefix)} bytes"
        )
    length = int.from_bytes(prefix, "little")
    if length > max_bytes:
        raise HeaderTooLarge(
            f"the header claims {length} bytes, at most {max_bytes} are accepted; "
            "is this a safetensors file?"
        )
    if 8 + length > file_bytes:
        raise HeaderTruncated(
            f"the header claims {length} bytes, but the file has {file_bytes} in all"
        )
    raw = stream.read(length)
    if len(raw) < length:
        raise HeaderTruncated(f"the header claims {length} bytes, only {len(raw)} could be read")
    if not raw.startswith(b"{"):
        raise HeaderMalformed("the header must begin with '{'")
    return raw


def _check_structure(raw: bytes) -> None:
    structure = len(outside_strings(raw.rstrip(b" "), MAX_STRUCTURE))
    if structure > MAX_STRUCTURE:
        raise HeaderTooLarge(
            f"the header has {structure} characters of structure, "
            f"at most {MAX_STRUCTURE} are accepted: too many tensors or metadata entries"
        )


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise HeaderMalformed(f"the header is not UTF-8 (byte {error.start})") from None


def _json(text: str) -> Any:
    try:
        return strict_json.parse(text)
    except ValueError as error:
        raise HeaderMalformed(f"header: {error}") from None


def _metadata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise HeaderMalformed("__metadata__ must be an object whose values are strings")
    return value


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _tensor(name: str, entry: Any) -> TensorEntry:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise HeaderMalformed(f"tensor {name!r}: expected exactly dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        raise HeaderMalformed(
            f"tensor {name!r}: expected a dtype of {', '.join(DTYPE_BYTES)}, found {dtype!r:.40}"
        )
    if not isinstance(shape, list) or not all(map(_is_count, shape)):
        raise HeaderMalformed(f"tensor {name!r}: shape must be a list of counts")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise HeaderMalformed(f"tensor {name!r}: data_offsets must be two counts")
    return TensorEntry(dtype, tuple(shape), offsets[0], offsets[1])


def _check_layout(tensors: Mapping[str, TensorEntry], data_bytes: int) -> None:
    """Tensors must fill the data part exactly: no hole, no overlap, nothing behind the last."""
    position = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].end)):
        if tensor.start != position:
            problem = "overlaps the tensor before it" if tensor.start < position else "has a hole"
            raise TensorLayout(
                f"tensor {name!r} {problem}: expected it at byte {position}, found {tensor.start}"
            )
        expected = math.prod(tensor.shape) * DTYPE_BYTES[tensor.dtype]
        if tensor.end - tensor.start != expected:
            raise TensorLayout(
                f"tensor {name!r}: shape {list(tensor.shape)} of {tensor.dtype} takes {expected} "
                f"bytes, its data_offsets span {tensor.end - tensor.start}"
            )
        position = tensor.end
    if position != data_bytes:
        raise TensorLayout(
            f"the tensors take {position} bytes, but {data_bytes} follow the header: "
            + ("the file is cut off" if data_bytes < position else "there is something behind them")
        )
