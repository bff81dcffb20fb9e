"""Recorder: measures a model on a split's references, from its logits, and writes columns."""

import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from prescore.errors import InvalidArgument
from prescore.files.bundles import CAPTIONS, open_captions
from prescore.plain_text import quoted
from prescore.recording import words
from prescore.recording.logits import LogitMeasures, measure_logits

_TOKENIZER = re.compile(r"[A-Za-z0-9._@:/+-]{1,100}")
_MOST_TOP = 20
_SHOWN = 5  # missing references that a refusal names
_WORD_BYTES = 256
_DTYPES = {"float32": "F32", "int64": "I64", "uint16": "U16", "uint32": "U32"}


@dataclass(frozen=True)
class SplitImage:
    name: str
    id: str | None
    references: tuple[str, ...]


class Recorder:
    """Computes columns of any model, a reference at a time: the whole matrix of probabilities is
    never in memory.

        with prescore.Recorder("flickr8k/", split="test", vocabulary=words) as recorder:
            recorder.add(image, reference, logits, targets)
            recorder.write("model.columns.safetensors")

    `bundle`: the dataset's folder or tar. `vocabulary`: the model's tokens by id, which answers
    show; without it they show no tokens. `tokenizer`: how references became tokens: `karpathy` and
    `blanks` are known to Prescore, which then counts the tokens of each reference; any other name
    keeps scores of different tokenizers apart. `pieces`: the name of the model's tokenizer, where
    its tokens are pieces of words; `tokenizer` then says how references became words. `model`: any
    text. `top`: how many of the most
    probable tokens are kept. `entropy`: whether the entropy of the next token is kept.
    """

    def __init__(
        self,
        bundle: str | os.PathLike[str],
        split: str = "test",
        *,
        vocabulary: Sequence[str] | None = None,
        tokenizer: str = "own",
        pieces: str | None = None,
        model: str = "",
        top: int = 1,
        entropy: bool = False,
    ) -> None:
        named = (
            {"tokenizer": tokenizer}
            if pieces is None
            else {"tokenizer": tokenizer, "pieces": pieces}
        )
        for name, value in named.items():
            if not _TOKENIZER.fullmatch(value):
                raise InvalidArgument(
                    f"{name}: expected 1 to 100 letters, digits and ._@:/+-, found {value!r:.60}"
                )
        words.warn_of_misspelling(tokenizer)
        if vocabulary is not None:
            words.warn_of_small_letters(vocabulary, tokenizer)
        if not 1 <= top <= _MOST_TOP:
            raise InvalidArgument(f"top: expected 1 to {_MOST_TOP}, found {top}")
        self._images = read_split(Path(bundle), split)
        names = ((name, at) for at, image in enumerate(self._images) for name in _list_names(image))
        self._places = dict(names)
        self._first = [0, *accumulate(len(image.references) for image in self._images)]
        self._vocabulary = vocabulary
        self._metadata = {**named, "model": quoted(model)}
        self._top = top
        self._entropy = entropy
        self._measured: dict[int, LogitMeasures] = {}
        self._counts: dict[int, list[int]] = {}  # of the pieces of words, END included

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._measured.clear()
        self._counts.clear()

    def images(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The split's images in order: the name of each, and its references. With a tokenizer that
        Prescore knows, a reference is its words with one blank between them.
        """
        for image in self._images:
            yield image.name, tuple(map(self._text, image.references))

    def add(
        self,
        image: str,
        reference: int,
        logits: Any,
        targets: Any,
        *,
        offsets: Any = None,
        counts: Any = None,
    ) -> None:
        """Record one reference of an image. `reference`: its place among the image's, from 0;
        `logits` (T, V): the model's scores for each next token, before or after log-softmax;
        `targets` (T): the ids of the reference's tokens, END included. Arrays of numpy or tensors
        of torch; padding is left out. A tie with the largest logit is a hit, so logits in float32
        or float64 say more than those in half precision.

        With `pieces`, one of two says which targets make each word, END apart: `offsets` (T - 1, 2)
        in the text that `images()` gives, as a tokenizer's `offset_mapping` has them; or `counts`,
        how many targets each word has.
        """
        place = self._place(image, reference)
        if place in self._measured:
            raise InvalidArgument(f"references[{reference}] of {image!r} was recorded before")
        if self._vocabulary is not None and tuple(logits.shape[1:]) != (len(self._vocabulary),):
            raise InvalidArgument(
                f"expected logits (T, {len(self._vocabulary)}), a column for each token of the "
                f"vocabulary, found {tuple(logits.shape)}"
            )
        measured = measure_logits(logits, targets, self._top)
        self._check_end(int(measured.ids[-1]))
        pieces = len(measured.ids) - 1
        if "pieces" in self._metadata:
            self._counts[place] = [*self._counted(image, reference, pieces, offsets, counts), 1]
        elif offsets is not None or counts is not None:
            raise InvalidArgument(
                "expected no offsets and no counts, since the Recorder was made without `pieces`, "
                "the name of the tokenizer of pieces"
            )
        self._measured[place] = measured

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file; InvalidArgument where a reference of the split is missing."""
        self._check_complete()
        self._warn_of_unknown_words()
        write_columns(Path(path), self._tensors(), self._metadata | self._described())

    def _place(self, image: str, reference: int) -> int:
        at = self._places.get(image)
        if at is None:
            raise InvalidArgument(f"{image!r} is not an image of the split")
        references = len(self._images[at].references)
        if not 0 <= reference < references:
            raise InvalidArgument(
                f"{image!r} has {references} references, counted from 0; found {reference}"
            )
        return self._first[at] + reference

    def _text(self, reference: str) -> str:
        return words.join_words(reference, self._metadata["tokenizer"])

    def _counted(
        self, image: str, reference: int, pieces: int, offsets: Any, counts: Any
    ) -> list[int]:
        """Count the pieces of each word of a reference."""
        if (offsets is None) == (counts is None):
            raise InvalidArgument(
                "expected `offsets` or `counts` for pieces, one of the two; found "
                f"{'neither' if offsets is None else 'both'}"
            )
        tokenizer = self._metadata["tokenizer"]
        is_known = tokenizer in words.TOKENIZERS
        text = self._text(self._images[self._places[image]].references[reference])
        if offsets is None:
            checked, expected = words.check_counts(counts, pieces), text.split()
            if is_known and len(checked) != len(expected):
                raise InvalidArgument(
                    f"expected counts of the {len(expected)} words of {text!r:.100}, "
                    f"found {len(checked)}"
                )
            return checked
        if not is_known:
            raise InvalidArgument(
                f"expected `counts`: offsets tell words of the tokenizers "
                f"{' and '.join(words.TOKENIZERS)} alone, not of {tokenizer}"
            )
        return words.count_pieces(text, offsets, pieces)

    def _check_end(self, last: int) -> None:
        """Raise unless the last token is that of the reference recorded first."""
        end = next((int(each.ids[-1]) for each in self._measured.values()), last)
        if last != end:
            raise InvalidArgument(
                f"expected the same last token, END, in each reference; found {last}, and {end} in "
                "the reference recorded first: add END to the targets, and its row to the logits"
            )

    def _check_complete(self) -> None:
        missing = [
            f"references[{reference}] of {image.name!r}"
            for at, image in enumerate(self._images)
            for reference in range(len(image.references))
            if self._first[at] + reference not in self._measured
        ]
        if missing:
            more = ", …" if len(missing) > _SHOWN else ""
            raise InvalidArgument(
                f"{len(missing)} of {self._first[-1]} references were not recorded: "
                f"{', '.join(missing[:_SHOWN])}{more}"
            )

    def _warn_of_unknown_words(self) -> None:
        """Warn where most references hold a token that stands for an unknown word."""
        unknown = words.find_unknown(self._vocabulary or ())
        every = self._measured.values()
        odd = sum(not unknown.keys().isdisjoint(each.ids.tolist()) for each in every)
        if odd > len(every) / 2:
            warnings.warn(
                f"{odd} of {len(every)} references hold {next(iter(unknown.values()))}: scores are "
                "mostly of unknown words. Expected the words of the model's training by "
                "`tokenizer`: `karpathy` makes small letters without signs, `blanks` leaves "
                "capital letters and signs as they are",
                stacklevel=3,
            )

    def _tensors(self) -> dict[str, NDArray[Any]]:
        measured = [self._measured[place] for place in range(self._first[-1])]
        lengths = (len(each.logp) for each in measured)
        tensors: dict[str, NDArray[Any]] = {
            "logp": np.concatenate([each.logp for each in measured]),
            "rank": _pack_indices([each.rank for each in measured]),
            "caption_offsets": np.array([0, *accumulate(lengths)], np.int64),
            "image_offsets": np.array(self._first, np.int64),
        }
        if self._vocabulary is not None:
            tensors["ids"] = _pack_indices([each.ids for each in measured])
            tensors["top_ids"] = _pack_indices([each.top_ids for each in measured])
            tensors["top_logp"] = np.concatenate([each.top_logp for each in measured])
        if self._counts:
            of_words = (count for at in range(self._first[-1]) for count in self._counts[at])
            tensors["word_offsets"] = np.array([0, *accumulate(of_words)], np.int64)
        if self._entropy:
            tensors["entropy"] = np.concatenate([each.entropy for each in measured])
        return tensors

    def _described(self) -> dict[str, str]:
        described = {
            "prescore_columns": "1",
            "images": json.dumps([image.name for image in self._images], ensure_ascii=False),
        }
        if self._vocabulary is not None:
            words = [show_token(word) for word in self._vocabulary]
            described["vocabulary"] = json.dumps(words, ensure_ascii=False)
        return described


def _list_names(image: SplitImage) -> Iterator[str]:
    yield image.name
    if image.id is not None:
        yield image.id


def _pack_indices(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.unsignedinteger[Any]]:
    indices = np.concatenate(parts)
    return indices.astype(np.uint16 if indices.max() < 1 << 16 else np.uint32)


def show_token(word: str) -> str:
    """A token as answers show it: control characters escaped, and cut where it is long."""
    plain = quoted(word)
    return plain if len(plain.encode()) <= _WORD_BYTES else plain[: _WORD_BYTES // 8] + "…"


def read_split(bundle: Path, split: str) -> list[SplitImage]:
    """Read a split's images in order; InvalidArgument where it has none."""
    images: list[SplitImage] = []
    others: set[str] = set()
    with open_captions(bundle) as stream:
        for number, line in enumerate(stream, start=1):
            image, of = _parse_image(bundle, number, line)
            if of == split:
                images.append(image)
            else:
                others.add(of)
    if not images:
        has = ", ".join(sorted(others)) or "none"
        raise InvalidArgument(f"expected a split named {split!r} in {bundle}, found {has}")
    return images


def _parse_image(bundle: Path, number: int, line: bytes) -> tuple[SplitImage, str]:
    try:
        value = json.loads(line)
        image, split, references = value["image"], value["split"], tuple(value["references"])
    except (ValueError, TypeError, KeyError):
        raise InvalidArgument(
            f'{bundle}, {CAPTIONS}, line {number}: expected {{"image", "split", "references"}}; '
            "`prescore check` says more"
        ) from None
    id_ = value.get("id")
    return SplitImage(image, None if id_ is None else str(id_), references), split


def write_columns(
    path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file, completely or not at all. Its tensors are sorted by name: the same
    content makes the same bytes.
    """
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    arrays, end = [], 0
    for name, tensor in sorted(tensors.items()):
        array = np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("<"))
        offsets = [end, end + array.nbytes]
        shape = list(tensor.shape)
        header[name] = {"dtype": _DTYPES[array.dtype.name], "shape": shape, "data_offsets": offsets}
        arrays.append(array)
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    try:
        _save_tensors(path, text + b" " * (-len(text) % 8), arrays)
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}") from None


def _save_tensors(path: Path, header: bytes, arrays: Sequence[NDArray[Any]]) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".prescore-") as folder:
        partial = Path(folder) / "partial"
        with partial.open("wb") as stream:
            stream.write(len(header).to_bytes(8, "little") + header)
            for array in arrays:
                stream.write(array.tobytes())
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
