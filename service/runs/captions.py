"""The details of an evaluation: captions with their own scores, and reference tokens."""

import json
import math
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.contract.api.captions import (
    CaptionOut,
    CaptionPage,
    CocoCaption,
    ReferenceOut,
    TokenOut,
    TokensOut,
    TopWord,
)
from service.contract.api.evaluations import EvaluationOut
from service.contract.errors import NotFound
from service.contract.formats import checkpoint_header, safetensors_header
from service.contract.formats.safetensors_header import TensorEntry
from service.contract.formats.strict_json import finite
from service.contract.formats.words import TOKENIZERS
from service.contract.metrics.families import FAMILIES
from service.runs import base, evaluations, search
from service.stored import datasets
from service.stored.datasets import Pinned
from service.works.parts import Parts

_END = "<end>"
_CHUNK = 1 << 18
_CODES = {"F64": "d", "F32": "f", "I64": "q", "U32": "I", "U16": "H"}
assert sys.byteorder == "little", "stored tensors are little-endian"


class TensorFile:
    """A safetensors file that a work wrote; reads single rows, never a whole tensor."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as stream:
            self.header = safetensors_header.read(
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


def captions(parts: Parts, identity: str, limit: int, cursor: str | None) -> CaptionPage:
    """A page of captions, with the scores that are computed so far."""
    of = f"captions of {identity}"
    start = 0 if cursor is None else search.read_cursor(of, cursor, int)[0]
    rows = rows_of(parts, identity)
    items = rows[start : start + limit]
    more = start + limit < len(rows)
    return CaptionPage(items=items, next=search.write_cursor(of, start + limit) if more else None)


def captions_sheet(parts: Parts, identity: str) -> Iterator[Sequence[object]]:
    rows = rows_of(parts, identity)
    names = list(rows[0].scores) if rows else []
    yield ["image", "caption", *names]
    for row in rows:
        yield [row.image, row.caption, *(row.scores[name] for name in names)]


def captions_columns(parts: Parts, identity: str) -> Iterator[bytes]:
    """All captions with their scores and statistics, as one safetensors file."""
    evaluation = evaluations.get(parts, identity)
    items = datasets.split_of(parts.blobs, pinned_of(parts, evaluation)).items
    pairs = pairs_of(parts, identity)
    return _stream(
        _score_files(parts, evaluation),
        [items[place].image for place, _ in pairs],
        [caption for _, caption in pairs],
    )


def captions_coco(parts: Parts, identity: str) -> list[CocoCaption]:
    """Captions in COCO's results format; `image_id` is a number where the bundle's id is one."""
    pinned = pinned_of(parts, evaluations.get(parts, identity))
    ids = [item.id or item.image for item in datasets.split_of(parts.blobs, pinned).items]
    pairs = pairs_of(parts, identity)
    return [
        CocoCaption(
            image_id=int(ids[place]) if ids[place].isdecimal() else ids[place], caption=caption
        )
        for place, caption in pairs
    ]


def tokens(parts: Parts, identity: str, image: str) -> TokensOut:
    """The references of one image, with the model's log-probability and rank of each word."""
    evaluation = evaluations.get(parts, identity)
    found = (base.result_of(parts.records, identity, name) for name in ("tokens", "columns"))
    result = next(filter(None, found), None)
    if result is None or evaluation.checkpoint is None:
        raise NotFound(f"evaluation {identity} has no columns (yet)")
    pinned = pinned_of(parts, evaluation)
    place = datasets.split_of(parts.blobs, pinned).places.get(image)
    if place is None:
        raise NotFound(f"{image!r:.100} is not an image of {pinned}")
    references = datasets.split_of(parts.blobs, pinned).items[place].references
    columns = TensorFile(parts.blobs.path(result, check=False))
    description = checkpoint_header.read(
        parts.blobs.path(evaluation.checkpoint, check=False)
    ).description
    first, last = columns.rows("image_offsets", place, place + 2)
    offsets = columns.rows("caption_offsets", first, last + 1)
    split = TOKENIZERS[description.tokenizer]
    captions = [
        ReferenceOut(
            text=text,
            tokens=_tokens(columns, start, [*split(text), _END], description.vocabulary),
        )
        for text, start in zip(references, offsets[:-1], strict=True)
    ]
    return TokensOut(image=image, captions=captions)


def _tokens(
    columns: TensorFile, start: int, words: list[str], vocabulary: tuple[str, ...]
) -> list[TokenOut]:
    stop = start + len(words)
    logp, rank = columns.rows("logp", start, stop), columns.rows("rank", start, stop)
    entropy = (
        columns.rows("entropy", start, stop) if "entropy" in columns.names else [None] * len(words)
    )
    tops = _tops(columns, start, stop, vocabulary)
    k = len(tops) // len(words)
    return [
        TokenOut(
            word=word,
            logp=finite(logp[at]),
            rank=rank[at],
            top=tops[at * k].word,
            top_logp=tops[at * k].logp,
            tops=tops[at * k : (at + 1) * k],
            entropy=finite(entropy[at]),
        )
        for at, word in enumerate(words)
    ]


def _tops(columns: TensorFile, start: int, stop: int, vocabulary: tuple[str, ...]) -> list[TopWord]:
    """The model's own words, those of each token laid end to end."""
    pairs = zip(
        columns.rows("top_ids", start, stop), columns.rows("top_logp", start, stop), strict=True
    )
    return [
        TopWord(
            word=_END if word == checkpoint_header.EDGE else vocabulary[word], logp=finite(logp)
        )
        for word, logp in pairs
    ]


def rows_of(parts: Parts, identity: str) -> list[CaptionOut]:
    evaluation = evaluations.get(parts, identity)
    pinned = pinned_of(parts, evaluation)
    names = [item.image for item in datasets.split_of(parts.blobs, pinned).items]
    pairs = pairs_of(parts, identity)
    scores = _caption_scores(parts, evaluation, len(pairs))
    return [
        CaptionOut(
            image=names[place],
            caption=caption,
            scores={name: finite(values[at]) for name, values in scores.items()},
        )
        for at, (place, caption) in enumerate(pairs)
    ]


def _caption_scores(parts: Parts, evaluation: EvaluationOut, count: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for path in _score_files(parts, evaluation).values():
        file = TensorFile(path)
        for tensor in file.names:
            part, name = tensor.split("/")
            if part == "captions":
                found[name] = file.rows(tensor, 0, count)
    return found


def _score_files(parts: Parts, evaluation: EvaluationOut) -> dict[str, Path]:
    """The score files of the works that are done, by the works' names."""
    results = {
        work.name: base.result_of(parts.records, evaluation.id, work.name)
        for work in evaluation.works
        if work.status == "done" and work.kind in FAMILIES
    }
    return {name: parts.blobs.path(found, check=False) for name, found in results.items() if found}


def pairs_of(parts: Parts, identity: str) -> list[tuple[int, str]]:
    digest = evaluations.captions_of(parts, identity)
    if digest is None:
        raise NotFound(f"evaluation {identity} has no captions (yet)")
    return [
        tuple(pair) for pair in json.loads(parts.blobs.path(digest, check=False).read_text("utf-8"))
    ]


def pinned_of(parts: Parts, evaluation: EvaluationOut) -> Pinned:
    dataset = evaluation.dataset
    return datasets.pin(parts.records, f"{dataset.name}@{dataset.version}/{dataset.split}")


@dataclass(frozen=True)
class _Column:
    file: TensorFile
    entry: TensorEntry


def _stream(
    results: Mapping[str, Path], images: Sequence[str], captions: Sequence[str]
) -> Iterator[bytes]:
    """Join the score files of several works (`results`, by name) to one safetensors file.

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
    metadata = {"images": images, "captions": captions, "signatures": signatures}
    yield _header(columns, {name: json.dumps(value) for name, value in metadata.items()})
    for name in sorted(columns):
        yield from columns[name].file.chunks(columns[name].entry, _CHUNK)


def _header(columns: Mapping[str, _Column], metadata: Mapping[str, str]) -> bytes:
    header: dict[str, object] = {"__metadata__": {"prescore_captions": "1", **metadata}}
    end = 0
    for name, column in sorted(columns.items()):
        start, end = end, end + column.entry.end - column.entry.start
        header[name] = {
            "dtype": column.entry.dtype,
            "shape": list(column.entry.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
