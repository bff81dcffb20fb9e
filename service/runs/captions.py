"""What lies below the scores: every caption with its own, every reference token with its odds."""

import json
from collections.abc import Iterator
from pathlib import Path

from service.contract.api.captions import (
    CaptionOut,
    CaptionPage,
    CocoCaption,
    ReferenceOut,
    TokenOut,
    TokensOut,
)
from service.contract.api.evaluations import EvaluationOut
from service.contract.errors import NotFound
from service.contract.formats import checkpoint_header
from service.contract.formats.strict_json import finite
from service.contract.formats.words import TOKENIZERS
from service.contract.metrics.catalogue import POSTGEN, work_of
from service.runs import base, csv_lines, cursors, evaluations, sheets
from service.runs.tensors import TensorFile
from service.stored import datasets
from service.stored.datasets import Pinned
from service.works.blobs import Blobs
from service.works.records import Records

_END = "<end>"
_SCORED = frozenset(map(work_of, POSTGEN))  # works whose results have scores of captions


def captions(
    records: Records, blobs: Blobs, identity: str, limit: int, cursor: str | None
) -> CaptionPage:
    """A page of captions; with the scores of the families that are done by now."""
    of = f"captions of {identity}"
    start = 0 if cursor is None else cursors.read(of, cursor, int)[0]
    rows = rows_of(records, blobs, identity)
    items = rows[start : start + limit]
    more = start + limit < len(rows)
    return CaptionPage(items=items, next=cursors.write(of, start + limit) if more else None)


def captions_csv(records: Records, blobs: Blobs, identity: str) -> Iterator[str]:
    rows = rows_of(records, blobs, identity)
    names = list(rows[0].scores) if rows else []
    yield csv_lines.line(["image", "caption", *names])
    for row in rows:
        yield csv_lines.line([row.image, row.caption, *(row.scores[name] for name in names)])


def captions_columns(records: Records, blobs: Blobs, identity: str) -> Iterator[bytes]:
    """Everything that is kept of them, in one file."""
    evaluation, _ = evaluations.get(records, identity)
    items = datasets.split_of(blobs, pinned_of(records, evaluation)).items
    pairs = pairs_of(records, blobs, identity)
    return sheets.stream(
        _score_files(records, blobs, evaluation),
        [items[place].image for place, _ in pairs],
        [caption for _, caption in pairs],
    )


def captions_coco(records: Records, blobs: Blobs, identity: str) -> list[CocoCaption]:
    """`image_id` is a number where the bundle's id is one."""
    pinned = pinned_of(records, evaluations.get(records, identity)[0])
    ids = [item.id or item.image for item in datasets.split_of(blobs, pinned).items]
    pairs = pairs_of(records, blobs, identity)
    return [
        CocoCaption(
            image_id=int(ids[place]) if ids[place].isdecimal() else ids[place], caption=caption
        )
        for place, caption in pairs
    ]


def tokens(records: Records, blobs: Blobs, identity: str, image: str) -> TokensOut:
    """Every reference of one image, word by word, with what the model thought of each."""
    evaluation, _ = evaluations.get(records, identity)
    result = base.result_of(records, identity, "columns")
    if result is None or evaluation.checkpoint is None:
        raise NotFound(f"evaluation {identity} has no columns (yet)")
    pinned = pinned_of(records, evaluation)
    place = datasets.split_of(blobs, pinned).places.get(image)
    if place is None:
        raise NotFound(f"{image!r:.100} is not an image of {pinned}")
    references = datasets.split_of(blobs, pinned).items[place].references
    columns = TensorFile(blobs.path(result, check=False))
    description = checkpoint_header.read(blobs.path(evaluation.checkpoint, check=False)).description
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
    k = columns.header.tensors["top_ids"].shape[1]
    logp, rank = columns.rows("logp", start, stop), columns.rows("rank", start, stop)
    top, top_logp = columns.rows("top_ids", start, stop), columns.rows("top_logp", start, stop)
    return [
        TokenOut(
            word=word,
            logp=finite(logp[at]),
            rank=rank[at],
            top=_END if top[at * k] == checkpoint_header.EDGE else vocabulary[top[at * k]],
            top_logp=finite(top_logp[at * k]),
        )
        for at, word in enumerate(words)
    ]


def rows_of(records: Records, blobs: Blobs, identity: str) -> list[CaptionOut]:
    evaluation, _ = evaluations.get(records, identity)
    pinned = pinned_of(records, evaluation)
    names = [item.image for item in datasets.split_of(blobs, pinned).items]
    pairs = pairs_of(records, blobs, identity)
    scores = _caption_scores(records, blobs, evaluation, len(pairs))
    return [
        CaptionOut(
            image=names[place],
            caption=caption,
            scores={name: finite(values[at]) for name, values in scores.items()},
        )
        for at, (place, caption) in enumerate(pairs)
    ]


def _caption_scores(
    records: Records, blobs: Blobs, evaluation: EvaluationOut, count: int
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for path in _score_files(records, blobs, evaluation).values():
        file = TensorFile(path)
        for tensor in file.names:
            part, name = tensor.split("/")
            if part == "captions":
                found[name] = file.rows(tensor, 0, count)
    return found


def _score_files(records: Records, blobs: Blobs, evaluation: EvaluationOut) -> dict[str, Path]:
    """By their works' names, of those that are done by now."""
    results = {
        work.name: base.result_of(records, evaluation.id, work.name)
        for work in evaluation.works
        if work.status == "done" and work.kind in _SCORED
    }
    return {name: blobs.path(found, check=False) for name, found in results.items() if found}


def pairs_of(records: Records, blobs: Blobs, identity: str) -> list[tuple[int, str]]:
    digest = evaluations.captions_of(records, identity)
    if digest is None:
        raise NotFound(f"evaluation {identity} has no captions (yet)")
    return [tuple(pair) for pair in json.loads(blobs.path(digest, check=False).read_text("utf-8"))]


def pinned_of(records: Records, evaluation: EvaluationOut) -> Pinned:
    dataset = evaluation.dataset
    return datasets.pin(records, f"{dataset.name}@{dataset.version}/{dataset.split}")
