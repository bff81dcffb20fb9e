"""Files of tensors that tasks wrote, read in parts and joined to one."""

import json
import math
import os
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.contract.formats import safetensors_header
from service.contract.formats.safetensors_header import TensorEntry

_CHUNK = 1 << 18
_CODES = {"F64": "d", "F32": "f", "I64": "q", "U32": "I", "U16": "H"}
assert sys.byteorder == "little", "stored tensors are little-endian"

Texts = Callable[[], Iterator[str]]


class TensorFile:
    """A safetensors file that a task wrote; reads single rows, never a whole tensor."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as stream:
            self.header = safetensors_header.read_safetensors_header(
                stream, path.stat().st_size, max_header_bytes=64_000_000
            )

    @property
    def names(self) -> list[str]:
        """Names of the tensors, in the order of the file."""
        return list(self.header.tensors)

    def chunks(self, entry: TensorEntry, size: int) -> Iterator[bytes]:
        """A tensor's bytes, in chunks of at most `size`."""
        left = entry.end - entry.start
        with self._path.open("rb") as stream:
            stream.seek(self.header.data_start + entry.start)
            while left and (chunk := stream.read(min(size, left))):
                left -= len(chunk)
                yield chunk

    def rows(self, name: str, start: int, stop: int) -> list[Any]:
        """Elements start … stop - 1 of the first axis; a matrix's rows in one flat list."""
        entry = self.header.tensors[name]
        width = math.prod(entry.shape[1:])
        values: array[Any] = array(_CODES[entry.dtype])
        with self._path.open("rb") as stream:
            stream.seek(self.header.data_start + entry.start + start * width * values.itemsize)
            values.frombytes(stream.read((stop - start) * width * values.itemsize))
        return values.tolist()

    def some(self, name: str, places: Sequence[int]) -> list[Any]:
        """The elements of a vector at these places."""
        entry = self.header.tensors[name]
        values: array[Any] = array(_CODES[entry.dtype])
        start, size = self.header.data_start + entry.start, values.itemsize
        with self._path.open("rb") as stream:
            file = stream.fileno()
            for place in places:
                values.frombytes(os.pread(file, size, start + place * size))
        return values.tolist()


@dataclass(frozen=True)
class _Column:
    file: TensorFile
    entry: TensorEntry


def join_score_files(
    results: Mapping[str, Path], images: Texts, captions: Texts
) -> Iterator[bytes]:
    """Join the score files of several tasks (`results`, by name) to one safetensors file.

    captions/cider_d (N) f64         every caption's own score
    statistics/bleu/… (N, …) f64     what the corpus score is computed from, by family
    metadata                         `images` and `captions` (N, as JSON), `signatures`
    """
    columns: dict[str, _Column] = {}
    signatures: dict[str, str] = {}
    for family, path in results.items():
        file = TensorFile(path)
        signatures |= json.loads(file.header.metadata["signatures"])
        for name, entry in file.header.tensors.items():
            part, own = name.split("/")
            full = name if part == "captions" else f"{part}/{family}/{own}"
            columns[full] = _Column(file, entry)

    def header() -> Iterator[bytes]:
        yield b'{"__metadata__": {"prescore_captions": "1", "images": "'
        yield from _quoted(images())
        yield b'", "captions": "'
        yield from _quoted(captions())
        yield f'", "signatures": {json.dumps(json.dumps(signatures))}}}'.encode()
        yield _tensors(columns)

    return _file(header, columns)


def _file(header: Callable[[], Iterator[bytes]], columns: Mapping[str, _Column]) -> Iterator[bytes]:
    """The header is made twice, since its length comes first and it may be long."""
    length = sum(map(len, header()))
    blanks = -length % 8
    yield (length + blanks).to_bytes(8, "little")
    yield from header()
    yield b" " * blanks
    for name in sorted(columns):
        yield from columns[name].file.chunks(columns[name].entry, _CHUNK)


def _quoted(texts: Iterator[str]) -> Iterator[bytes]:
    """A JSON list of texts, as the inside of a JSON string."""
    before = "["
    for text in texts:
        yield json.dumps(before + json.dumps(text))[1:-1].encode()
        before = ", "
    yield b"]" if before == ", " else b"[]"


def _tensors(columns: Mapping[str, _Column]) -> bytes:
    """The entries of the tensors, to the end of the header."""
    header: dict[str, object] = {}
    end = 0
    for name, column in sorted(columns.items()):
        start, end = end, end + column.entry.end - column.entry.start
        header[name] = {
            "dtype": column.entry.dtype,
            "shape": list(column.entry.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header)
    return (", " * bool(header) + text[1:]).encode()
