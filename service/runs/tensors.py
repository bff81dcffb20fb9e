"""Rows of stored tensors, read without numpy: what the API shows of columns and scores."""

import math
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from service.contract.formats import safetensors_header
from service.contract.formats.safetensors_header import TensorEntry

_CODES = {"F64": "d", "F32": "f", "I64": "q", "U32": "I", "U16": "H"}
assert sys.byteorder == "little", "stored tensors are little-endian"


class TensorFile:
    """One file of ours; rows are read where they stand, never the whole tensor."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as stream:
            self.header = safetensors_header.read(
                stream, path.stat().st_size, max_header_bytes=64_000_000
            )

    @property
    def names(self) -> list[str]:
        """As they follow each other in the file."""
        return list(self.header.tensors)

    def chunks(self, entry: TensorEntry, size: int) -> Iterator[bytes]:
        """A tensor's bytes as they stand."""
        left = entry.end - entry.start
        with self._path.open("rb") as stream:
            stream.seek(self.header.data_start + entry.start)
            while left and (chunk := stream.read(min(size, left))):
                left -= len(chunk)
                yield chunk

    def rows(self, name: str, start: int, stop: int) -> list[Any]:
        """Elements start … stop - 1 of the first axis; of a matrix, rows laid end to end."""
        entry = self.header.tensors[name]
        width = math.prod(entry.shape[1:])
        values: array[Any] = array(_CODES[entry.dtype])
        with self._path.open("rb") as stream:
            stream.seek(self.header.data_start + entry.start + start * width * values.itemsize)
            values.frombytes(stream.read((stop - start) * width * values.itemsize))
        return values.tolist()
