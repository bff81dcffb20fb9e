"""Values of a file of columns: checked a chunk at a time, and compared with a split."""

import math
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from operator import lt
from pathlib import Path
from typing import IO, Any

from service.contract.errors import ColumnsRefused
from service.contract.formats import columns_header, outputs
from service.contract.formats.bundles import BundleItem
from service.contract.formats.columns_header import ColumnsHeader
from service.contract.formats.vocabularies import MODEL_TOKENIZERS
from service.contract.wording import count_noun

_CODES = {"F32": "f", "I64": "q", "U32": "I", "U16": "H"}
_CHUNK = 1 << 16  # values
_ROUNDING = 0.01  # of logarithms: as far as a softmax in half precision is from its sum of 1
assert sys.byteorder == "little", "safetensors are little-endian"


def validate_columns(path: Path) -> ColumnsHeader:
    """The header of a file whose header and values are right; ColumnsRefused says what is wrong."""
    with path.open("rb") as stream:
        header = columns_header.parse_columns_header(stream, path.stat().st_size)
        _ColumnsValues(stream, header).check()
    return header


def read_columns_offsets(path: Path, header: ColumnsHeader) -> "ColumnsOffsets":
    with path.open("rb") as stream:
        return _ColumnsValues(stream, header).offsets()


def count_references_with_unknown(path: Path, header: ColumnsHeader) -> int:
    """Count the references of a validated file that hold a token for unknown words."""
    names = header.vocabulary or ()
    unknown = {at for at, name in enumerate(names) if name.casefold() in outputs.UNKNOWN}
    if not unknown or "ids" not in header.tensors:
        return 0
    with path.open("rb") as stream:
        found = _ColumnsValues(stream, header)
        ends = found.offsets().captions
        tokens = (at for at, each in enumerate(found.ids()) if each in unknown)
        return len({bisect_right(ends, token) for token in tokens})


@dataclass(frozen=True)
class ColumnsOffsets:
    """Offsets of columns. `captions`: where the tokens of each reference begin; `images`: where the
    references of each image begin; `words`: where the tokens of each word begin, None where each
    token is one. All have an end.
    """

    captions: "array[int]"
    images: "array[int]"
    words: "array[int] | None"

    def words_of(self, caption: int) -> int:
        """Count the words of a reference, END included."""
        start, end = self.captions[caption : caption + 2]
        if self.words is None:
            return end - start
        return bisect_left(self.words, end) - bisect_left(self.words, start)


class _ColumnsValues:
    def __init__(self, stream: IO[bytes], header: ColumnsHeader) -> None:
        self._stream = stream
        self._header = header

    def check(self) -> None:
        self._ends = self.offsets()
        self._check_ends()
        self._check_probabilities()
        self._check_words()
        self._check_top()
        self._check_entropy()

    def offsets(self) -> ColumnsOffsets:
        header = self._header
        is_of_pieces = "word_offsets" in header.tensors
        return ColumnsOffsets(
            self._offsets("caption_offsets", header.tokens, "tokens"),
            self._offsets("image_offsets", header.references, "references"),
            self._offsets("word_offsets", header.tokens, "tokens") if is_of_pieces else None,
        )

    def _offsets(self, name: str, end: int, of: str) -> "array[int]":
        found: array[int] = array("q")
        for chunk in self._chunks(name):
            found += chunk
        if found[0] != 0 or found[-1] != end:
            raise _odd(
                name, f"expected 0 first and {end}, the number of {of}, last", found[0], found[-1]
            )
        if not all(map(lt, found, islice(found, 1, None))):
            at, (low, high) = next(
                (at, pair) for at, pair in enumerate(pairwise(found)) if pair[0] >= pair[1]
            )
            expected = f"expected entry {at + 1} to be greater than entry {at}"
            raise _odd(name, expected, low, high)
        return found

    def _check_ends(self) -> None:
        """Raise unless the last token of each reference, END, is a word of its own."""
        words = self._ends.words
        if words is None:
            return
        for end in islice(self._ends.captions, 1, None):
            at = bisect_left(words, end)
            if (words[at - 1], words[at]) != (end - 1, end):
                expected = f"expected {end - 1} and {end}, since END is a word of its own"
                raise self._wrong("word_offsets", end - 1, expected, words[at - 1], words[at])

    def _check_probabilities(self) -> None:
        words = math.inf if self._header.vocabulary is None else len(self._header.vocabulary)
        pairs = zip(self._all("logp"), self._all("rank"), strict=True)
        for token, (logp, rank) in enumerate(pairs):
            if not logp <= 0:
                expected = "expected the natural logarithm of a probability, at most 0"
                raise self._wrong("logp", token, expected, logp)
            if rank >= words:
                expected = f"expected less than the vocabulary's {words} words"
                raise self._wrong("rank", token, expected, rank)
            if logp + math.log1p(rank) > _ROUNDING:
                expected = (
                    f"rank {rank} says that so many words are more probable, so expected at most "
                    f"{-math.log1p(rank):.4f}"
                )
                raise self._wrong("logp", token, expected, logp)
            if rank == 0 and logp == -math.inf:
                expected = "rank 0 says that no word is more probable, so expected a finite number"
                raise self._wrong("logp", token, expected, logp)

    def _check_words(self) -> None:
        for name, width in (("ids", 1), ("top_ids", self._header.top)):
            if name not in self._header.tensors:
                continue
            words = len(self._header.vocabulary or ())
            first = 0
            for chunk in self._chunks(name):
                if max(chunk) >= words:
                    at, odd = next((at, id_) for at, id_ in enumerate(chunk) if id_ >= words)
                    expected = f"expected less than the vocabulary's {words} words"
                    raise self._wrong(name, (first + at) // width, expected, odd)
                first += len(chunk)

    def _check_top(self) -> None:
        width = self._header.top
        if not width:
            return
        best = self._all("top_logp")
        pairs = zip(self._all("logp"), self._all("rank"), strict=True)
        for token, (logp, rank) in enumerate(pairs):
            row = [*islice(best, width)]
            if not all(value <= 0 for value in row) or any(a < b for a, b in pairwise(row)):
                expected = "expected logarithms of probabilities, at most 0, the greatest first"
                raise self._wrong("top_logp", token, expected, *row[:5])
            if row[0] < logp - _ROUNDING or (rank == 0 and row[0] > logp + _ROUNDING):
                expected = f"expected the most probable word's, as rank {rank} and logp {logp:.4f}"
                raise self._wrong("top_logp", token, f"{expected} have it", row[0])

    def _check_entropy(self) -> None:
        if "entropy" not in self._header.tensors:
            return
        for token, value in enumerate(self._all("entropy")):
            if not 0 <= value < math.inf:
                raise self._wrong("entropy", token, "expected nats, at least 0", value)

    def ids(self) -> Iterator[int]:
        return self._all("ids")

    def _all(self, name: str) -> Iterator[Any]:
        return chain.from_iterable(self._chunks(name))

    def _chunks(self, name: str) -> "Iterator[array[Any]]":
        entry = self._header.tensors[name]
        at, end = self._header.data_start + entry.start, self._header.data_start + entry.end
        while at < end:
            chunk: array[Any] = array(_CODES[entry.dtype])
            self._stream.seek(at)
            chunk.frombytes(self._stream.read(min(_CHUNK * chunk.itemsize, end - at)))
            at += len(chunk) * chunk.itemsize
            yield chunk

    def _wrong(self, name: str, token: int, expected: str, *found: float) -> ColumnsRefused:
        """Refusal with the place of a token, from 0 as in arrays: which reference of its image,
        which token of that.
        """
        caption = bisect_right(self._ends.captions, token) - 1
        image = bisect_right(self._ends.images, caption) - 1
        reference = caption - self._ends.images[image]
        within = token - self._ends.captions[caption]
        named = f"{self._header.images[image]!r:.100}"
        place = f"{name}, image {named}, references[{reference}], tokens[{within}]"
        return _odd(place, expected, *found)


def _odd(place: str, expected: str, *found: float) -> ColumnsRefused:
    shown = ", ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in found)
    return ColumnsRefused(
        f"{place}: {expected}; found {shown}", pointer=f"/{place.partition(',')[0]}"
    )


def find_split_difference(path: Path, items: Iterable[BundleItem], images: int) -> str | None:
    """Find the first image that differs; None where none does. With a tokenizer
    that Prescore knows, also the numbers of tokens are compared.
    """
    header = columns_header.read_columns_header(path)
    found = read_columns_offsets(path, header)
    split = MODEL_TOKENIZERS.get(header.tokenizer)
    for place, (name, item) in enumerate(zip(header.images, items, strict=False)):
        if name not in (item.image, item.id):
            return _at(place, f"the split has {item.image!r:.100}, the columns {name!r:.100}")
        first, last = found.images[place], found.images[place + 1]
        if last - first != len(item.references):
            counts = f"{count_noun(len(item.references), 'reference')}, the columns {last - first}"
            return _at(place, f"{item.image!r:.100} has {counts}")
        for number, text in enumerate(item.references if split else ()):
            has = found.words_of(first + number)
            expected = len(split(text)) + 1 if split else 0
            if has != expected:
                return _at(
                    place,
                    f"references[{number}] of {item.image!r:.100} has "
                    f"{count_noun(expected, 'token')} by the "
                    f"tokenizer {header.tokenizer}, END included; the columns have {has}",
                )
    if len(header.images) != images:
        return f"the split has {count_noun(images, 'image')}, the columns {len(header.images)}"
    return None


def _at(place: int, text: str) -> str:
    return f"images[{place}]: {text}"
