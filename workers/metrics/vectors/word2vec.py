r"""Files of word vectors, as word2vec, GloVe and gensim write them, converted once to our format.

    3000000 300\n                        number of words, numbers in a vector; GloVe's files lack it
    in 0.0703125 0.08691406 …\n          text: each line is a word and its numbers
    in <300 float32, little-endian>\n    binary: the last line break may be missing

gensim reads them, also packed by gzip. Pickles (gensim's own `save`) run code when they are loaded,
and are refused.
"""

import hashlib
import io
import logging
import os
import re
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from gzip import BadGzipFile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from service.contract.errors import AssetRefused, MetricFailed
from service.contract.settings import machine_memory
from workers.metrics.vectors import word_vectors
from workers.progress import Progress, ignore_progress

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


def convert_word_vectors(source: Path, target: Path) -> None:
    """Convert a file. Raises MetricFailed if `source` is no file of word vectors."""
    with source.open("rb") as stream:
        is_packed = stream.read(len(_GZIP)) == _GZIP
        stream.seek(0)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        link = Path(folder) / ("vectors.gz" if is_packed else "vectors")  # gensim goes by the name
        link.symlink_to(source.absolute())
        keyed = _load(str(link))
    words = (word.encode("utf-8", "surrogateescape") for word in keyed.index_to_key)
    keys = b"".join(map(word_vectors.hash_word, words))
    word_vectors.write_word_vectors(
        target, word_vectors.collect_vectors(digest, keyed.vectors, keys)
    )


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
    """Options for gensim. Only in a text file the second line is a word and its numbers."""
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
    """True if a line is a word and `size` numbers."""
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
    """Check that the last word of a binary file ends with a blank before its numbers."""
    stream.seek(max(end - 2, 0))
    if b" " not in stream.read(2):
        raise MetricFailed(
            "expected a blank before the numbers of the last word, found none: the file is cut "
            "off, has vectors of another length than its first line says, or is no word2vec file"
        )


def _checked_vectors() -> "type[KeyedVectors]":
    """The class of gensim's vectors, with checks of sizes and numbers, which gensim lacks."""
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


_LEAST_COUNT = 5  # of a word in the captions; with all words, people agree no more
_LEAST_WORDS = 10


@dataclass(frozen=True)
class VectorTrainingOptions:
    """Options of a training; `size`: numbers in a vector."""

    size: int = 100
    epochs: int = 10
    seed: int = 0


def train_word_vectors(
    captions: Sequence[str],
    path: Path,
    options: VectorTrainingOptions,
    progress: Progress = ignore_progress,
) -> None:
    """Train vectors on captions, which are tokens joined by blanks, and write them in word2vec's
    binary format. `progress` counts epochs. Raises AssetRefused if too few words stand in the
    captions often enough.
    """
    from gensim.models.callbacks import CallbackAny2Vec
    from gensim.models.word2vec import LineSentence, Word2Vec

    logging.getLogger("gensim").setLevel(logging.ERROR)  # it advises to take more threads
    lines = LineSentence(io.BytesIO("\n".join(captions).encode()))
    model = Word2Vec(
        vector_size=options.size,
        min_count=_LEAST_COUNT,
        sg=1,
        workers=1,
        seed=options.seed,
        hashfxn=lambda word: zlib.crc32(word.encode()),  # `hash` differs from process to process
    )
    model.build_vocab(lines)
    words = len(model.wv)
    if words < _LEAST_WORDS:
        raise AssetRefused(
            f"expected at least {_LEAST_WORDS} words that stand {_LEAST_COUNT} times or more in "
            f"the captions, found {words} in {len(captions)} captions: train on more captions, or "
            "register word vectors from elsewhere with `prescore assets add word-vectors PATH`"
        )
    progress(0, options.epochs)
    numbers, each_epoch = count(1), CallbackAny2Vec()
    each_epoch.on_epoch_end = lambda _: progress(next(numbers), options.epochs)
    model.train(lines, total_examples=len(captions), epochs=options.epochs, callbacks=[each_epoch])
    model.wv.save_word2vec_format(str(path), binary=True)
