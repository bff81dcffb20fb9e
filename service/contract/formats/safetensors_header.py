"""Reads and checks the header of a safetensors file, with the standard library alone.

The file may be an attack. Sizes are limited and structure is counted *before* anything is parsed,
so that a refusal takes under a second and under 64 MB, whatever the file claims. What is accepted
here is accepted by the official library too, but not the reverse.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from service.contract.errors import (
    HeaderMalformed,
    HeaderTooLarge,
    HeaderTruncated,
    TensorLayout,
)
from service.contract.formats import strict_json

MAX_HEADER_BYTES = 4_000_000  # 280,000 words of 9 letters; the official library takes 100 MB
MAX_STRUCTURE = 20_000  # characters outside strings (braces, digits …): a canonical header has 700
MAX_TENSOR_BITS = 2**63  # other readers count in 64 bits, and multiply before they reach a 0
DTYPE_BYTES: Mapping[str, int] = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,  # these are in files of Prescore and of others, never in a canonical checkpoint
    "U32": 4,
    "U16": 2,
    "U8": 1,
    "BOOL": 1,
}


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


def count_header_bytes(beginning: bytes, max_header_bytes: int = MAX_HEADER_BYTES) -> int:
    """Count the bytes of a file that must be there to read its header, by its beginning."""
    if len(beginning) < 8:
        return 8
    length = int.from_bytes(beginning[:8], "little")
    return 8 if length > max_header_bytes else 8 + length


def read_safetensors_header(
    stream: IO[bytes],
    file_bytes: float,
    max_header_bytes: int = MAX_HEADER_BYTES,
    max_structure: int = MAX_STRUCTURE,
) -> SafetensorsHeader:
    """Read only the header from `stream`; `file_bytes` is the length of the whole file, or infinity
    where nobody knows it yet.
    """
    raw = _header_bytes(stream, file_bytes, max_header_bytes)
    _check_structure(raw, max_structure)
    text = _decoded(raw)
    header = _json_object(text)
    metadata = _metadata(header.pop("__metadata__", {}))
    tensors = {name: _tensor(name, entry) for name, entry in header.items()}
    data_start = 8 + len(raw)
    _check_layout(tensors, file_bytes - data_start)
    return SafetensorsHeader(metadata, tensors, data_start)


def parse_string_list(text: str, at_most: int) -> list[str]:
    """A metadata entry that is a JSON list of strings and nothing else.

    Parsed JSON needs memory by its structure, not its length, so the structure is counted first.
    Raises NotJson, or HeaderTooLarge where there are more than `at_most` strings.
    """
    structure = _outside_strings(text.encode(), at_most)
    if structure.count(b"[") != 1 or structure.strip(b" \t\r\n[],"):
        raise strict_json.NotJson("expected a JSON list of strings and nothing else")
    return list(strict_json.parse_json(text))


def _outside_strings(text: bytes, max_strings: int) -> bytes:
    """JSON text without its string literals: its structure, numbers and constants."""
    bare = text.replace(rb"\\", b"").replace(rb"\"", b"")
    strings = bare.count(b'"') // 2
    if strings > max_strings:
        raise HeaderTooLarge(f"{strings} strings, at most {max_strings} are accepted")
    return b"".join(bare.split(b'"')[::2])


def _header_bytes(stream: IO[bytes], file_bytes: float, max_bytes: int) -> bytes:
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


def _check_structure(raw: bytes, most: int) -> None:
    structure = len(_outside_strings(raw.rstrip(b" "), most))
    if structure > most:
        raise HeaderTooLarge(
            f"the header has {structure} characters of structure, "
            f"at most {most} are accepted: too many tensors or metadata entries"
        )


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise HeaderMalformed(f"the header is not UTF-8 (byte {error.start})") from None


def _json_object(text: str) -> dict[str, Any]:
    try:
        # `_header_bytes` has checked that it begins with a brace.
        value: dict[str, Any] = strict_json.parse_json(text)
    except strict_json.NotJson as error:
        raise HeaderMalformed(f"header: {error}", pointer=error.where[:100] or None) from None
    return value


def _metadata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise HeaderMalformed(f"__metadata__: expected an object, found {value!r:.60}")
    for name, text in value.items():
        if not isinstance(text, str):
            raise HeaderMalformed(f"__metadata__, {name!r:.100}: expected text, found {text!r:.60}")
    return value


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _tensor(name: str, entry: Any) -> TensorEntry:
    where = f"tensor {name!r:.100}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise HeaderMalformed(
            f"{where}: expected exactly dtype, shape and data_offsets, found {entry!r:.100}"
        )
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        raise HeaderMalformed(
            f"{where}: expected a dtype of {', '.join(DTYPE_BYTES)}, found {dtype!r:.40}"
        )
    if not isinstance(shape, list) or not all(map(_is_count, shape)):
        raise HeaderMalformed(f"{where}: expected a shape of counts, found {shape!r:.100}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise HeaderMalformed(f"{where}: expected two data_offsets, found {offsets!r:.100}")
    return TensorEntry(dtype, tuple(shape), offsets[0], offsets[1])


def _bytes_of(name: str, tensor: TensorEntry) -> int:
    bits = 8 * DTYPE_BYTES[tensor.dtype]
    for count in tensor.shape:
        bits *= max(count, 1)
        if bits > MAX_TENSOR_BITS:
            raise TensorLayout(
                f"tensor {name!r:.100}: expected a size that 64 bits can count, "
                f"found shape {list(tensor.shape)!s:.100}"
            )
    return 0 if 0 in tensor.shape else bits // 8


def _check_layout(tensors: Mapping[str, TensorEntry], data_bytes: float) -> None:
    """Tensors must fill the data part exactly: no gap, no overlap, nothing after the last."""
    position = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].end)):
        if tensor.start != position:
            problem = (
                "overlaps the tensor before it" if tensor.start < position else "comes after a gap"
            )
            raise TensorLayout(
                f"tensor {name!r:.100} {problem}: "
                f"expected it at byte {position}, found {tensor.start}"
            )
        expected = _bytes_of(name, tensor)
        if tensor.end - tensor.start != expected:
            raise TensorLayout(
                f"tensor {name!r:.100}: shape {list(tensor.shape)!s:.100} of {tensor.dtype} takes "
                f"{expected} bytes, its data_offsets span {tensor.end - tensor.start}"
            )
        position = tensor.end
    if position != data_bytes < math.inf:
        raise TensorLayout(
            f"the tensors take {position} bytes, but {data_bytes} follow the header: "
            + ("the file is cut off" if data_bytes < position else "other bytes come after them")
        )
