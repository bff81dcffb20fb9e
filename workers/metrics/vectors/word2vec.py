r"""word2vec's text and binary files, converted once and in little memory to our own format.

    3000000 300\n                        number of words, numbers in a vector
    in 0.0703125 0.08691406 …\n          text: each line is a word and its numbers
    in <300 float32, little-endian>\n    binary: the last line break may be missing

One vector at a time is read, whatever the first line claims. Pickles (gensim's own `save`) run code
when they are loaded, and are refused.
"""

import hashlib
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed
from workers.metrics.vectors import word_vectors

MAX_WORDS = 20_000_000
MAX_NUMBERS = 4096
MAX_WORD_BYTES = 1000

_NUMBER_BYTES = 40  # of a number in text at most, with a blank; 17 digits and an exponent take 25
_CHUNK = 1 << 20
_BLOCK = 1024  # vectors written at a time
_FOREIGN = {
    b"\x80": "a pickle, which runs code when it is loaded: save the vectors by gensim's "
    "save_word2vec_format",
    b"\x1f\x8b": "a gzip file: unpack it first",
    b"PK": "a zip file: unpack it first",
    b"BZh": "a bzip2 file: unpack it first",
}

Row = tuple[bytes, NDArray[np.float32]]


def convert(source: Path, target: Path) -> None:
    """Convert a file. Raises MetricFailed, with what was expected and found, if `source` is not a
    word2vec file.
    """
    with (
        source.open("rb") as stream,
        tempfile.TemporaryFile(dir=target.parent) as scratch,
    ):
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        stream.seek(0)
        count, size = _sizes(stream, source.stat().st_size)
        keys = _save(_rows(stream, count, size), scratch)
        vectors = np.memmap(scratch, np.dtype("<f4"), mode="r", shape=(count, size))
        word_vectors.write(target, word_vectors.collect(digest, vectors, keys))


def _sizes(stream: BinaryIO, file_bytes: int) -> tuple[int, int]:
    line = stream.readline(100)
    for start, what in _FOREIGN.items():
        if line.startswith(start):
            raise MetricFailed(f"expected a word2vec file, found {what}")
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        raise MetricFailed(
            "expected a first line with the number of words and the length of a vector, "
            f"found {line!r:.100}; GloVe's files lack it: add it"
        )
    count, size = map(int, fields)
    if not 1 <= count <= MAX_WORDS or not 1 <= size <= MAX_NUMBERS:
        raise MetricFailed(
            f"expected 1 to {MAX_WORDS} words of 1 to {MAX_NUMBERS} numbers, "
            f"found {count} of {size}"
        )
    least = len(line) + count * (1 + 2 * size) - 1  # in text: a blank and a digit for each number
    if file_bytes < least:
        raise MetricFailed(
            f"expected {least} bytes at least for {count} words of {size} numbers, "
            f"found {file_bytes}: the file is cut off"
        )
    return count, size


def _rows(stream: BinaryIO, count: int, size: int) -> Iterator[Row]:
    """The rows of a text or binary file. Both begin alike, but only in text the second line is a
    word and numbers.
    """
    start = stream.tell()
    line = stream.readline(MAX_WORD_BYTES + size * _NUMBER_BYTES)
    stream.seek(start)
    try:
        _parsed(line, size)
    except ValueError:
        return _binary(stream, count, size)
    return _text(stream, count, size)


def _text(stream: BinaryIO, count: int, size: int) -> Iterator[Row]:
    longest = MAX_WORD_BYTES + size * _NUMBER_BYTES
    for index in range(count):
        line = stream.readline(longest)
        if not line:
            raise MetricFailed(f"expected {count} words, found {index}: the file is cut off")
        try:
            yield _parsed(line, size)
        except ValueError as error:
            raise MetricFailed(f"line {index + 2}: {error}") from None
    _check_end(stream.read(_CHUNK), count)


def _parsed(line: bytes, size: int) -> Row:
    """The row in a line. Raises ValueError if it is not a word and `size` numbers."""
    word, *fields = line.rstrip().split(b" ")
    if not 1 <= len(word) <= MAX_WORD_BYTES or len(fields) != size:
        raise ValueError(
            f"expected a word and {size} numbers, found {len(fields)} behind {word!r:.60}"
        )
    numbers = np.array([float(field) for field in fields])
    with np.errstate(over="ignore"):  # too large becomes infinite, which `_save` refuses
        return word, numbers.astype("<f4")


def _binary(stream: BinaryIO, count: int, size: int) -> Iterator[Row]:
    width = 4 * size
    buffer, at = b"", 0
    for index in range(count):
        if len(buffer) - at < MAX_WORD_BYTES + 2 + width:
            buffer, at = buffer[at:] + stream.read(_CHUNK), 0
        blank = buffer.find(b" ", at, at + MAX_WORD_BYTES + 2)
        word, end = buffer[at : max(at, blank)].lstrip(b"\n"), blank + 1 + width
        if blank < 0 or len(word) > MAX_WORD_BYTES or end > len(buffer):
            raise MetricFailed(
                f"word {index + 1} of {count}: expected a word of at most {MAX_WORD_BYTES} bytes, "
                f"a blank and {width} bytes of numbers; is the file cut off, or not from word2vec?"
            )
        yield word, np.frombuffer(buffer, "<f4", size, blank + 1)
        at = end
    _check_end(buffer[at:] + stream.read(_CHUNK), count)


def _check_end(rest: bytes, count: int) -> None:
    if rest.strip():
        raise MetricFailed(f"expected {count} words, found more: {rest.strip()!r:.60}")


def _save(rows: Iterator[Row], scratch: BinaryIO) -> bytes:
    """Write the vectors to `scratch`; returns the words' keys."""
    keys = bytearray()
    while block := list(islice(rows, _BLOCK)):
        vectors = np.stack([vector for _, vector in block])
        wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(wrong):
            word = block[wrong[0]][0]
            raise MetricFailed(f"expected finite numbers, the vector of {word!r:.60} has others")
        scratch.write(vectors.tobytes())
        keys += b"".join(word_vectors.key(word) for word, _ in block)
    scratch.flush()
    return bytes(keys)
