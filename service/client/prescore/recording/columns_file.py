"""Writes a safetensors file with the standard library and numpy: completely or not at all."""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prescore.errors import InvalidArgument

_NAMES = {"float32": "F32", "int64": "I64", "uint16": "U16", "uint32": "U32"}


def write(path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write tensors, sorted by name; the same content makes the same bytes."""
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    arrays, end = [], 0
    for name, tensor in sorted(tensors.items()):
        array = np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("<"))
        offsets = [end, end + array.nbytes]
        shape = list(tensor.shape)
        header[name] = {"dtype": _NAMES[array.dtype.name], "shape": shape, "data_offsets": offsets}
        arrays.append(array)
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    try:
        _save(path, text + b" " * (-len(text) % 8), arrays)
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}") from None


def _save(path: Path, header: bytes, arrays: Sequence[NDArray[Any]]) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".prescore-") as folder:
        partial = Path(folder) / "partial"
        with partial.open("wb") as stream:
            stream.write(len(header).to_bytes(8, "little") + header)
            for array in arrays:
                stream.write(array.tobytes())
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
