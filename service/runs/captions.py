"""The details of an evaluation: captions with their own scores, and reference tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

from prescore.models.captions import (
    CaptionPage,
    CocoCaption,
    Token,
    TokenizedCaption,
    Tokens,
    TopWord,
)
from service.contract.errors import BlobDamaged, InvalidCursor, NotFound
from service.contract.formats import (
    checkpoint_header,
    columns_header,
    model_formats,
    onnx_bundles,
    packages,
    plugins,
)
from service.contract.formats.strict_json import replace_infinite
from service.contract.formats.vocabularies import MODEL_TOKENIZERS
from service.engine.service_parts import ServiceParts
from service.runs import (
    caption_search,
    evaluations,
    run_lists,
    run_store,
    scored_captions,
    tensor_files,
    word_index,
)
from service.runs.caption_search import EVERY_CAPTION, CaptionQuery
from service.runs.tensor_files import TensorFile
from service.stored import checkpoints, datasets

_END = "<end>"
_BLANKS = "blanks"  # of these tokenizers, the one that takes words as they are written


def build_caption_page(
    parts: ServiceParts,
    identity: str,
    limit: int,
    cursor: str | None,
    wanted: CaptionQuery = EVERY_CAPTION,
) -> CaptionPage:
    """A page of captions, with the scores that are computed so far."""
    if wanted != EVERY_CAPTION:
        return caption_search.find_caption_page(parts, identity, wanted, limit, cursor)
    of = f"captions of {identity}"
    start, byte = _position(of, cursor)
    found = scored_captions.find_scored_captions(parts, identity)
    skipped = start if byte == 0 else 0
    try:
        page = list(islice(scored_captions.read_pairs(found.path, byte), skipped, skipped + limit))
    except BlobDamaged:
        if cursor is None:
            raise
        raise InvalidCursor("expected the `next` of an earlier answer of this list") from None
    items = found.rows(page, start)
    following = page[-1].following if page else None
    more = None if following is None else run_lists.write_cursor(of, start + len(page), following)
    wording = word_index.find_wording(found) if cursor is None else None
    return CaptionPage(items=items, next=more, matching=None, distribution=None, wording=wording)


def _position(of: str, cursor: str | None) -> tuple[int, int]:
    """Position of a page: its place in the list, and the byte of the file."""
    if cursor is None:
        return 0, 0
    start, byte = run_lists.read_cursor(of, cursor, int, int)
    return start, byte


def build_caption_table(
    parts: ServiceParts, identity: str, wanted: CaptionQuery = EVERY_CAPTION
) -> Iterator[Sequence[object]]:
    """Captions with their scores and words as rows of a table, with the columns' names first."""
    found = scored_captions.find_readable_captions(parts, identity)
    names = list(found.scores)
    shown = (
        found.all_rows()
        if wanted == EVERY_CAPTION
        else caption_search.select_captions(found, wanted)
    )

    def rows() -> Iterator[Sequence[object]]:
        yield ["image", "caption", *names, "nearest", "invented", "missed"]
        for row in shown:
            scores = (row.scores[name] for name in names)
            words = " ".join(row.invented), " ".join(row.missed)
            yield [row.image, row.caption, *scores, row.nearest, *words]

    return rows()


def stream_caption_columns(parts: ServiceParts, identity: str) -> Iterator[bytes]:
    """All captions with their scores and statistics, as one safetensors file."""
    found = scored_captions.find_readable_captions(parts, identity)
    return tensor_files.join_score_files(found.files, found.images, found.captions)


def stream_coco_captions(
    parts: ServiceParts, identity: str, wanted: CaptionQuery = EVERY_CAPTION
) -> Iterator[bytes]:
    """Captions in COCO's results format, as JSON; `image_id` is a number where the bundle's id is
    one.
    """
    found = scored_captions.find_readable_captions(parts, identity)
    chosen = (
        found.named() if wanted == EVERY_CAPTION else caption_search.select_named(found, wanted)
    )

    def pieces() -> Iterator[bytes]:
        before = "["
        for pair, (image, id_) in chosen:
            name = id_ or image
            number = int(name) if name.isdecimal() else name
            row = CocoCaption(image_id=number, caption=pair.caption).model_dump_json()
            yield (before + row).encode()
            before = ","
        yield b"[]" if before == "[" else b"]"

    return pieces()


def read_reference_tokens(parts: ServiceParts, identity: str, image: str) -> Tokens:
    """The references of one image, with the model's log-probability and rank of each word."""
    evaluation = evaluations.get_evaluation(parts, identity)
    found = (run_store.find_result(parts.records, identity, name) for name in ("tokens", "columns"))
    result = next(filter(None, found), None)
    if evaluation.checkpoint is None and evaluation.columns is None:
        raise NotFound(f"{identity} has no columns: its captions were sent, without a checkpoint")
    if result is None:
        raise NotFound(run_store.explain_missing(evaluation, "columns", task="columns"))
    pinned = evaluations.find_split(parts, evaluation)
    images = datasets.open_pinned_split(parts.blobs, pinned)
    with images.places() as places:
        place = places.get(image)
    if place is None:
        raise NotFound(f"{image!r:.100} is not an image of {pinned}")
    if evaluation.checkpoint is not None:
        columns = TensorFile(parts.blobs.path(result, check=False))
        file = checkpoints.find_evaluated_file(parts, evaluation.checkpoint)
        words = _of_checkpoint(parts.blobs.path(file, check=False), columns)
    else:
        assert evaluation.columns is not None
        path = parts.blobs.path(evaluation.columns, check=False)
        columns, words = _of_columns(path, TensorFile(parts.blobs.path(result, check=False)))
    first, last = columns.rows("image_offsets", place, place + 2)
    offsets = columns.rows("caption_offsets", first, last + 1)
    captions = [
        TokenizedCaption(text=text, tokens=_tokens(columns, start, stop, words, text))
        for text, (start, stop) in zip(
            images.items[place].references, pairwise(offsets), strict=True
        )
    ]
    return Tokens(image=image, captions=captions)


@dataclass(frozen=True)
class _TokenWords:
    """Words of a file's tokens. `edge`: the id that is shown as the end."""

    tokenizer: str
    vocabulary: Sequence[str]
    edge: int | None

    def of(self, columns: TensorFile, start: int, stop: int, text: str) -> list[str | None]:
        """The words of a reference, which are None where nothing tells them, as where one of them
        had no piece.
        """
        if self.tokenizer in MODEL_TOKENIZERS:
            found: list[str | None] = [*MODEL_TOKENIZERS[self.tokenizer](text), _END]
            if len(found) == stop - start:
                return found
        if "ids" not in columns.names:
            return [*[None] * (stop - start - 1), _END]
        return [*map(self.shown, columns.rows("ids", start, stop - 1)), _END]

    def shown(self, id_: int) -> str:
        return _END if id_ == self.edge else self.vocabulary[id_]


def _of_checkpoint(path: Path, scored: TensorFile) -> _TokenWords:
    if scored.header.metadata.get("units") is not None:  # of a model of pieces
        return _TokenWords(_BLANKS if scored.header.metadata["units"] == "words" else "", (), None)
    form = model_formats.detect_format(path)
    if form == "onnx":
        return _of_onnx(path)
    if form == "plugin":
        words = plugins.read_plugin_header(path).tokens
        assert isinstance(words, plugins.PluginWords)
        return _TokenWords(words.tokenizer, words.vocabulary, checkpoint_header.EDGE)
    description = checkpoint_header.read_checkpoint_header(path).description
    return _TokenWords(description.tokenizer, description.vocabulary, checkpoint_header.EDGE)


def _of_onnx(path: Path) -> _TokenWords:
    with packages.open_package(path) as package:
        manifest, words = onnx_bundles.read_manifest_and_words(package)
    return _TokenWords(manifest.tokenizer or "", words, manifest.tokens.end)


def _of_columns(path: Path, scored: TensorFile) -> tuple[TensorFile, _TokenWords]:
    """The columns that are shown: what was brought, or what a task made of its pieces."""
    found = columns_header.read_columns_header(path)
    units = scored.header.metadata.get("units")
    if units == "words":
        return scored, _TokenWords(found.tokenizer, (), None)
    tokenizer = found.tokenizer if units is None else ""
    return TensorFile(path), _TokenWords(tokenizer, found.vocabulary or (), None)


def _tokens(
    columns: TensorFile, start: int, stop: int, words: _TokenWords, text: str
) -> list[Token]:
    count = stop - start
    logp, rank = columns.rows("logp", start, stop), columns.rows("rank", start, stop)
    entropy = columns.rows("entropy", start, stop) if "entropy" in columns.names else [None] * count
    tops = _tops(columns, start, stop, words)
    k = len(tops) // count
    return [
        Token(
            word=word,
            logp=replace_infinite(logp[at]),
            rank=rank[at],
            top=tops[at * k].word if k else None,
            top_logp=tops[at * k].logp if k else None,
            tops=tops[at * k : (at + 1) * k],
            entropy=replace_infinite(entropy[at]),
        )
        for at, word in enumerate(words.of(columns, start, stop, text))
    ]


def _tops(columns: TensorFile, start: int, stop: int, words: _TokenWords) -> list[TopWord]:
    """The model's own words, those of each token laid end to end."""
    if "top_ids" not in columns.names or not words.vocabulary:
        return []
    pairs = zip(
        columns.rows("top_ids", start, stop), columns.rows("top_logp", start, stop), strict=True
    )
    return [TopWord(word=words.shown(word), logp=replace_infinite(logp)) for word, logp in pairs]
