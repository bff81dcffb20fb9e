"""What lies below the scores: every caption with its own, every reference token with its odds."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from service import datasets, evaluations
from service.contract import bundles, checkpoint_header
from service.contract.blobs import FileBlobs
from service.contract.catalogue import POSTGEN
from service.contract.errors import InvalidCursor, NotFound
from service.contract.records import Records
from service.contract.schemas import EvaluationOut, Page
from service.contract.words import TOKENIZERS
from service.datasets import Pinned
from service.tensors import TensorFile


def captions(
    records: Records, blobs: FileBlobs, identity: str, limit: int, cursor: str | None
) -> Page:
    """A page of {"image", "caption", "scores"}; scores of the families that are done by now."""
    start = 0 if cursor is None else _position(cursor)
    rows = _rows(records, blobs, identity)
    items = rows[start : start + limit]
    more = start + limit < len(rows)
    return Page(items=items, next=str(start + limit) if more else None)


def captions_csv(records: Records, blobs: FileBlobs, identity: str) -> Iterator[str]:
    rows = _rows(records, blobs, identity)
    names = list(rows[0]["scores"]) if rows else []
    yield _csv_line(["image", "caption", *names])
    for row in rows:
        yield _csv_line([row["image"], row["caption"], *(row["scores"][name] for name in names)])


def captions_coco(records: Records, blobs: FileBlobs, identity: str) -> list[dict[str, Any]]:
    """COCO results format: `image_id` is the bundle's id (a number where it is one)."""
    pinned = _pinned(records, evaluations.get(records, identity)[0])
    ids = [item.id or item.image for item in _items(blobs, pinned)]
    pairs = _pairs(records, blobs, identity)
    return [
        {"image_id": int(ids[place]) if ids[place].isdecimal() else ids[place], "caption": caption}
        for place, caption in pairs
    ]


def tokens(records: Records, blobs: FileBlobs, identity: str, image: str) -> dict[str, Any]:
    """Every reference of one image, word by word, with what the model thought of each."""
    evaluation, _ = evaluations.get(records, identity)
    result = evaluations.result_of(records, identity, "columns")
    if result is None or evaluation.checkpoint is None:
        raise NotFound(f"evaluation {identity} has no columns (yet)")
    pinned = _pinned(records, evaluation)
    place = datasets.images(blobs, pinned).get(image)
    if place is None:
        raise NotFound(f"{image!r:.100} is not an image of {pinned}")
    references = _items(blobs, pinned)[place].references
    columns = TensorFile(blobs.path(result, check=False))
    description = checkpoint_header.read(blobs.path(evaluation.checkpoint, check=False)).description
    first, last = columns.rows("image_offsets", place, place + 2)
    offsets = columns.rows("caption_offsets", first, last + 1)
    split = TOKENIZERS[description.tokenizer]
    return {
        "image": image,
        "captions": [
            {
                "text": text,
                "tokens": _tokens(columns, start, [*split(text), "<end>"], description.vocabulary),
            }
            for text, start in zip(references, offsets[:-1], strict=True)
        ],
    }


def _tokens(
    columns: TensorFile, start: int, words: list[str], vocabulary: tuple[str, ...]
) -> list[dict[str, Any]]:
    stop = start + len(words)
    k = columns.header.tensors["top_ids"].shape[1]
    logp, rank = columns.rows("logp", start, stop), columns.rows("rank", start, stop)
    top, top_logp = columns.rows("top_ids", start, stop), columns.rows("top_logp", start, stop)
    return [
        {
            "word": word,
            "logp": logp[at],
            "rank": rank[at],
            "top": "<end>" if top[at * k] == checkpoint_header.EDGE else vocabulary[top[at * k]],
            "top_logp": top_logp[at * k],
        }
        for at, word in enumerate(words)
    ]


def _rows(records: Records, blobs: FileBlobs, identity: str) -> list[dict[str, Any]]:
    evaluation, _ = evaluations.get(records, identity)
    pinned = _pinned(records, evaluation)
    names = [item.image for item in _items(blobs, pinned)]
    pairs = _pairs(records, blobs, identity)
    scores = _caption_scores(records, blobs, evaluation, len(pairs))
    return [
        {
            "image": names[place],
            "caption": caption,
            "scores": {name: values[at] for name, values in scores.items()},
        }
        for at, (place, caption) in enumerate(pairs)
    ]


def _caption_scores(
    records: Records, blobs: FileBlobs, evaluation: EvaluationOut, count: int
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for work in evaluation.works:
        result = evaluations.result_of(records, evaluation.id, work.name)
        if work.status != "done" or result is None or work.kind in _NO_SCORES:
            continue
        file = TensorFile(blobs.path(result, check=False))
        for name in POSTGEN:
            if f"captions/{name}" in file.names:
                found[name] = file.rows(f"captions/{name}", 0, count)
    return found


_NO_SCORES = ("prefix", "columns", "pregen", "captions", "references")


def _pairs(records: Records, blobs: FileBlobs, identity: str) -> list[tuple[int, str]]:
    digest = evaluations.captions_of(records, identity)
    if digest is None:
        raise NotFound(f"evaluation {identity} has no captions (yet)")
    return [tuple(pair) for pair in json.loads(blobs.path(digest, check=False).read_text("utf-8"))]


def _pinned(records: Records, evaluation: EvaluationOut) -> Pinned:
    dataset = evaluation.dataset
    return datasets.pin(records, f"{dataset.name}@{dataset.version}/{dataset.split}")


def _items(blobs: FileBlobs, pinned: Pinned) -> list[bundles.Item]:
    return bundles.read_split(blobs.path(pinned.digest, check=False), pinned.split)


def _position(cursor: str) -> int:
    if not cursor.isdecimal() or len(cursor) > 12:
        raise InvalidCursor("expected the `next` of an earlier answer")
    return int(cursor)


def _csv_line(values: list[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(values)
    return buffer.getvalue()
