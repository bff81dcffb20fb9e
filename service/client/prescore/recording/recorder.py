"""Records what a model thinks of a split's references, from its logits, into a file of columns."""

import json
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from prescore.errors import InvalidArgument
from prescore.plain_text import quoted
from prescore.recording import columns_file, splits, words
from prescore.recording.measuring import Measured, measure

_TOKENIZER = re.compile(r"[A-Za-z0-9._@:/+-]{1,100}")
_MOST_TOP = 20
_SHOWN = 5  # missing references that a refusal names
_WORD_BYTES = 256


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
        words.warn_of_a_slip(tokenizer)
        if vocabulary is not None and pieces is None:
            words.warn_of_small_letters(vocabulary, tokenizer)
        if not 1 <= top <= _MOST_TOP:
            raise InvalidArgument(f"top: expected 1 to {_MOST_TOP}, found {top}")
        self._images = splits.read(Path(bundle), split)
        names = ((name, at) for at, image in enumerate(self._images) for name in _names(image))
        self._places = dict(names)
        self._first = [0, *accumulate(len(image.references) for image in self._images)]
        self._vocabulary = vocabulary
        self._metadata = {**named, "model": quoted(model)}
        self._top = top
        self._entropy = entropy
        self._measured: dict[int, Measured] = {}
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
        found = measure(logits, targets, self._top)
        self._check_end(int(found.ids[-1]))
        pieces = len(found.ids) - 1
        if "pieces" in self._metadata:
            self._counts[place] = [*self._counted(image, reference, pieces, offsets, counts), 1]
        elif offsets is not None or counts is not None:
            raise InvalidArgument(
                "expected no offsets and no counts, since the Recorder was made without `pieces`, "
                "the name of the tokenizer of pieces"
            )
        self._measured[place] = found

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file; InvalidArgument where a reference of the split is missing."""
        self._check_complete()
        self._warn_of_unknown_words()
        columns_file.write(Path(path), self._tensors(), self._metadata | self._described())

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
        return words.text_of(reference, self._metadata["tokenizer"])

    def _counted(
        self, image: str, reference: int, pieces: int, offsets: Any, counts: Any
    ) -> list[int]:
        """How many pieces each word of a reference has."""
        if (offsets is None) == (counts is None):
            raise InvalidArgument(
                "expected `offsets` or `counts` for pieces, one of the two; found "
                f"{'neither' if offsets is None else 'both'}"
            )
        tokenizer = self._metadata["tokenizer"]
        is_known = tokenizer in words.TOKENIZERS
        text = self._text(self._images[self._places[image]].references[reference])
        if offsets is None:
            found, expected = words.checked(counts, pieces), text.split()
            if is_known and len(found) != len(expected):
                raise InvalidArgument(
                    f"expected counts of the {len(expected)} words of {text!r:.100}, "
                    f"found {len(found)}"
                )
            return found
        if not is_known:
            raise InvalidArgument(
                f"expected `counts`: offsets tell words of the tokenizers "
                f"{' and '.join(words.TOKENIZERS)} alone, not of {tokenizer}"
            )
        return words.counted(text, offsets, pieces)

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
        unknown = words.unknown_of(self._vocabulary or ())
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
        found = [self._measured[place] for place in range(self._first[-1])]
        lengths = (len(each.logp) for each in found)
        tensors: dict[str, NDArray[Any]] = {
            "logp": np.concatenate([each.logp for each in found]),
            "rank": _indices([each.rank for each in found]),
            "caption_offsets": np.array([0, *accumulate(lengths)], np.int64),
            "image_offsets": np.array(self._first, np.int64),
        }
        if self._vocabulary is not None:
            tensors["ids"] = _indices([each.ids for each in found])
            tensors["top_ids"] = _indices([each.top_ids for each in found])
            tensors["top_logp"] = np.concatenate([each.top_logp for each in found])
        if self._counts:
            of_words = (count for at in range(self._first[-1]) for count in self._counts[at])
            tensors["word_offsets"] = np.array([0, *accumulate(of_words)], np.int64)
        if self._entropy:
            tensors["entropy"] = np.concatenate([each.entropy for each in found])
        return tensors

    def _described(self) -> dict[str, str]:
        described = {
            "prescore_columns": "1",
            "images": json.dumps([image.name for image in self._images], ensure_ascii=False),
        }
        if self._vocabulary is not None:
            words = [_shown(word) for word in self._vocabulary]
            described["vocabulary"] = json.dumps(words, ensure_ascii=False)
        return described


def _names(image: splits.Image) -> Iterator[str]:
    yield image.name
    if image.id is not None:
        yield image.id


def _indices(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.unsignedinteger[Any]]:
    found = np.concatenate(parts)
    return found.astype(np.uint16 if found.max() < 1 << 16 else np.uint32)


def _shown(word: str) -> str:
    """A token as answers show it: control characters escaped, and cut where it is long."""
    plain = quoted(word)
    return plain if len(plain.encode()) <= _WORD_BYTES else plain[: _WORD_BYTES // 8] + "…"
