"""The reference side of the post-gen metrics, prepared once for a dataset version and split."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pycocoevalcap.cider.cider_scorer import precook

from service.contract.errors import MetricFailed
from workers import files
from workers.control import Stop, never
from workers.metrics.jvm import Jvm
from workers.metrics.tokens import SIGNATURES, Tokenizer, tokenize

Ngram = tuple[str, ...]
_FORMAT = 1
_LONGEST = 4  # n-grams of 1 to 4 tokens


@dataclass(frozen=True)
class References:
    """`captions` are tokens joined by blanks, image by image. `frequencies` counts the images in
    whose references an n-gram occurs; those of one image are left out (four fifths), for they weigh
    as much as those of none.
    """

    tokenizer: Tokenizer
    captions: tuple[tuple[str, ...], ...]
    frequencies: Mapping[Ngram, float]

    @property
    def images(self) -> int:
        return len(self.captions)

    @property
    def signature(self) -> str:
        """How they were made: `refs:5|tok:ptb3.4.1`."""
        counts = sorted({len(image) for image in self.captions})
        return f"refs:{'-'.join(map(str, counts[:1] + counts[1:][-1:]))}|tok:{self.tokens}"

    @property
    def tokens(self) -> str:
        return SIGNATURES[self.tokenizer]


def prepare(
    references: Sequence[Sequence[str]], tokenizer: Tokenizer, jvm: Jvm, *, stop: Stop = never
) -> References:
    """From people's captions, image by image; MetricFailed where an image has none."""
    for image, captions in enumerate(references):
        if not captions:
            raise MetricFailed(f"image {image}: expected at least one reference, found none")
    flat = [caption for captions in references for caption in captions]
    tokens = iter(tokenize(flat, tokenizer, jvm, stop=stop))
    prepared = tuple(tuple(next(tokens) for _ in captions) for captions in references)
    return References(tokenizer, prepared, _frequencies(prepared))


def write(path: Path, references: References) -> None:
    """One JSON file. No token holds a blank, so an n-gram is its tokens joined by blanks."""
    content = {
        "prescore_references": _FORMAT,
        "tokenizer": references.tokenizer,
        "captions": references.captions,
        "frequencies": {" ".join(ngram): n for ngram, n in references.frequencies.items()},
    }
    text = json.dumps(content, ensure_ascii=False)
    files.write(path, lambda partial: partial.write_text(text, "utf-8"))


def read(path: Path) -> References:
    """What `write` wrote; MetricFailed where the file is something else."""
    try:
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if content["prescore_references"] != _FORMAT or content["tokenizer"] not in SIGNATURES:
            raise MetricFailed(f"expected references of format {_FORMAT} in {path.name}")
        captions = tuple(tuple(image) for image in content["captions"])
        counted = {tuple(key.split(" ")): n for key, n in content["frequencies"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MetricFailed(f"{path.name} is no file of references: {error}") from None
    return References(content["tokenizer"], captions, _Frequencies(counted))


class _Frequencies(dict[Ngram, float]):
    """As the package's scorer wants it, which asks for every n-gram; nothing is added by asking."""

    def __missing__(self, ngram: Ngram) -> float:
        return 0.0


def _frequencies(captions: Sequence[Sequence[str]]) -> _Frequencies:
    found: Counter[Ngram] = Counter()
    for image in captions:
        found.update({ngram for caption in image for ngram in precook(caption, _LONGEST)})
    return _Frequencies({ngram: float(n) for ngram, n in found.items() if n > 1})
