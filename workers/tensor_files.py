"""Writes safetensors files: completely or not at all, with equal bytes for equal content.

The official writer puts metadata in a random order, so that the same weights get another SHA-256
each time; here files are found by their SHA-256.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers import files

_NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
}


def write_tensors(
    path: Path,
    tensors: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, str],
    dtypes: Mapping[str, str] | None = None,
) -> None:
    """Write tensors, sorted by name. `dtypes` names types that numpy lacks (BF16 as uint16)."""
    files.write_atomically(
        path, lambda partial: write_tensors_into(partial, tensors, metadata, dtypes)
    )


def write_tensors_into(
    path: Path,
    tensors: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, str],
    dtypes: Mapping[str, str] | None = None,
) -> None:
    """Write tensors into this very file, where no other one may be made."""
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    arrays, end = [], 0
    for name, tensor in sorted(tensors.items()):
        array = np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("<"))
        header[name] = {
            "dtype": (dtypes or {}).get(name, _NAMES[array.dtype.name]),
            "shape": list(tensor.shape),
            "data_offsets": [end, end + array.nbytes],
        }
        arrays.append(array)
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of eight
    with path.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for array in arrays:
            stream.write(array.data if array.size else b"")
