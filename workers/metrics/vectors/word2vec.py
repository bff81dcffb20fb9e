r"""Files of word vectors, as word2vec, GloVe and gensim write them, converted once to our format.

    3000000 300\n                        number of words, numbers in a vector; GloVe's files lack it
    in 0.0703125 0.08691406 …\n          text: each line is a word and its numbers
    in <300 float32, little-endian>\n    binary: the last line break may be missing

gensim reads them, also packed by gzip. Pickles (gensim's own `save`) run code when they are loaded,
and are refused.
"""

import hashlib
import os
import re
import tempfile
import warnings
import zlib
from gzip import BadGzipFile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from service.contract.errors import MetricFailed
from service.contract.settings import machine_memory
from workers.metrics.vectors import word_vectors

if TYPE_CHECKING:
    from gensim.models import KeyedVectors

_SIZES = re.compile(rb"\s*\d{1,9}\s+(\d{1,9})\s*")
_LONGEST_LINE = 1 << 20
_WORD_BYTES = 300  # of a word in gensim's memory, beside its numbers
_MEMORY_SHARE = 0.75
_GZIP = b"\x1f\x8b"
_FOREIGN = {
    b"\x80": "a pickle, which runs code when it is loaded: save the vectors by gensim's "
    "save_word2vec_format",
    b"PK": "a zip file: unpack it first",
    b"BZh": "a bzip2 file: unpack it first",
}


def convert(source: Path, target: Path) -> None:
    """Convert a file. Raises MetricFailed, with what was expected and found, if `source` is no file
    of word vectors.
    """
    with source.open("rb") as stream:
        is_packed = stream.read(len(_GZIP)) == _GZIP
        stream.seek(0)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        link = Path(folder) / ("vectors.gz" if is_packed else "vectors")  # gensim goes by the name
        link.symlink_to(source.absolute())
        keyed = _load(str(link))
    words = (word.encode("utf-8", "surrogateescape") for word in keyed.index_to_key)
    keys = b"".join(map(word_vectors.key, words))
    word_vectors.write(target, word_vectors.collect(digest, keyed.vectors, keys))


def _load(path: str) -> "KeyedVectors":
    from gensim import utils

    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # gensim leaves GloVe's files open
        try:
            with utils.open(path, "rb") as stream:
                options = _detect_format(stream)
            return _checked_vectors().load_word2vec_format(
                path, unicode_errors="surrogateescape", **options
            )
        except MetricFailed as error:
            refusal = error.detail
        except (ValueError, EOFError, BadGzipFile, zlib.error) as error:
            refusal = f"the file is cut off, damaged, or holds no word vectors: {error}"
    raise MetricFailed(refusal)


def _detect_format(stream: BinaryIO) -> dict[str, bool]:
    """Options by which gensim reads a file. Text and binary files begin alike, but only in text the
    second line is a word and its numbers.
    """
    line = stream.readline(_LONGEST_LINE)
    for beginning, what in _FOREIGN.items():
        if line.startswith(beginning):
            raise MetricFailed(f"expected a file of word2vec or GloVe, found {what}")
    sizes = _SIZES.fullmatch(line)
    numbers = len(line.split()) - 1
    if sizes is None and (numbers < 2 or not _is_row(line, numbers)):
        raise MetricFailed(
            "expected a first line with the number of words and the length of a vector, or with a "
            f"word and its numbers, found {line!r:.100}"
        )
    size = numbers if sizes is None else int(sizes[1])
    is_binary = sizes is not None and not _is_row(stream.readline(_LONGEST_LINE), size)
    end = stream.seek(0, os.SEEK_END)
    _check_memory(end, "a file")
    if is_binary:
        _check_last_word(stream, end - 4 * size)
    return {"binary": is_binary, "no_header": sizes is None}


def _is_row(line: bytes, size: int) -> bool:
    """Whether a line is a word and `size` numbers."""
    word, *numbers = line.rstrip().split(b" ")
    try:
        return bool(word) and len(list(map(float, numbers))) == size
    except ValueError:
        return False


def _check_memory(needed: int, what: str) -> None:
    available = int(_MEMORY_SHARE * machine_memory())
    if needed > available:
        raise MetricFailed(
            f"expected vectors that fit in {available / 1e9:.1f} GB of memory, found {what} of "
            f"{needed / 1e9:.1f} GB: leave out rare words, or use a larger machine"
        )


def _check_last_word(stream: BinaryIO, end: int) -> None:
    """Check that a blank is where the last word of a binary file ends, before its numbers and a
    line break.
    """
    stream.seek(max(end - 2, 0))
    if b" " not in stream.read(2):
        raise MetricFailed(
            "expected a blank before the numbers of the last word, found none: the file is cut "
            "off, has vectors of another length than its first line says, or is no word2vec file"
        )


def _checked_vectors() -> "type[KeyedVectors]":
    """The class of gensim's vectors, with checks: gensim's own takes any size, and a single number
    for a whole vector.
    """
    from gensim.models import KeyedVectors

    class CheckedVectors(KeyedVectors):  # type: ignore[misc]  # gensim has no types
        def __init__(self, vector_size: int, count: int, **options: Any) -> None:
            if vector_size < 1 or count < 1:
                raise MetricFailed(f"expected words and numbers, found {count} of {vector_size}")
            needed = count * (_WORD_BYTES + 4 * vector_size)
            _check_memory(needed, f"{count} words of {vector_size} numbers,")
            super().__init__(vector_size, count, **options)

        def has_index_for(self, _: object) -> bool:
            return False  # words that stand twice are added twice, and `collect` sees to them

        def add_vector(self, key: str, vector: Any) -> int:
            if len(vector) != self.vector_size or not np.isfinite(vector).all():
                raise MetricFailed(
                    f"word {self.next_index + 1}, {key!r:.60}: expected {self.vector_size} finite "
                    f"numbers, found {len(vector)}: {vector!s:.60}"
                )
            place: int = super().add_vector(key, vector)
            return place

    return CheckedVectors
