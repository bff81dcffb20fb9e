"""Reads and checks the header of a file of columns that somebody's own code computed, with the
standard library alone and without reading a value.
"""

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from prescore import foreign
from prescore.plain_text import is_plain
from service.contract import limits
from service.contract.errors import ColumnsRefused, InvalidCheckpoint
from service.contract.formats import safetensors_header, strict_json
from service.contract.formats.checkpoint_header import check_metadata_sizes
from service.contract.formats.safetensors_header import TensorEntry
from service.contract.formats.vocabularies import MAX_WORD_BYTES
from service.contract.wording import count_noun

FORMAT = "1"
MAX_HEADER_BYTES = 16_000_000  # 400,000 names of 20 letters, and 500,000 words
MAX_WORDS = 500_000  # the largest vocabularies of language models have 260,000
MAX_MODEL = 1000  # characters
_TOKENIZER = re.compile(r"[A-Za-z0-9._@:/+-]{1,100}")  # it is a part of signatures
_REQUIRED_METADATA = ("prescore_columns", "images", "tokenizer", "model")
_OF_PIECES = "pieces"  # metadata: by which tokenizer the tokens are pieces of words
_INDEX = ("U16", "U32")
_DTYPES: Mapping[str, tuple[str, ...]] = {
    "logp": ("F32",),
    "rank": _INDEX,
    "caption_offsets": ("I64",),
    "image_offsets": ("I64",),
    "word_offsets": ("I64",),
    "ids": _INDEX,
    "top_ids": _INDEX,
    "top_logp": ("F32",),
    "entropy": ("F32",),
}
_REQUIRED = ("logp", "rank", "caption_offsets", "image_offsets")
_MATRICES = ("top_ids", "top_logp")
_OF_WORDS = ("ids", "top_ids")  # these are places in the vocabulary


@dataclass(frozen=True)
class ColumnsHeader:
    """Header of a file of columns. `tokenizer`: how references became tokens, or words
    where the tokens are pieces of these; `pieces`: the tokenizer of pieces; `words`: how many these
    make; `top`: how many of the most probable tokens there are at each token.
    """

    images: tuple[str, ...]
    tokenizer: str
    model: str
    vocabulary: tuple[str, ...] | None
    tokens: int
    references: int
    top: int
    tensors: Mapping[str, TensorEntry]
    data_start: int
    pieces: str | None
    words: int | None


def read_columns_header(path: Path) -> ColumnsHeader:
    with path.open("rb") as stream:
        return parse_columns_header(stream, path.stat().st_size)


def is_columns_file(path: Path) -> bool:
    """Tell whether a safetensors file says that it has columns, right or wrong."""
    try:
        with path.open("rb") as stream:
            found = safetensors_header.read_safetensors_header(
                stream, path.stat().st_size, MAX_HEADER_BYTES
            )
    except InvalidCheckpoint:
        return False
    return "prescore_columns" in found.metadata


def parse_columns_header(stream: IO[bytes], file_bytes: float) -> ColumnsHeader:
    """Read only the header; raises a ColumnsRefused that says what is wrong. `file_bytes` is
    infinity where nobody knows the file's length yet.
    """
    stream.seek(0, os.SEEK_SET)
    try:
        header = safetensors_header.read_safetensors_header(stream, file_bytes, MAX_HEADER_BYTES)
    except InvalidCheckpoint as error:
        raise _foreign(stream) or ColumnsRefused(error.detail, pointer=error.pointer) from None
    _check_metadata(header.metadata)
    vocabulary = _vocabulary(header.metadata)
    images = _images(header.metadata)
    _check_names(header.tensors, vocabulary)
    pieces = _pieces(header.metadata, header.tensors)
    tokens, references, top = _check_shapes(header.tensors, len(images))
    return ColumnsHeader(
        images,
        header.metadata["tokenizer"],
        header.metadata["model"],
        vocabulary,
        tokens,
        references,
        top,
        header.tensors,
        header.data_start,
        pieces,
        header.tensors["word_offsets"].shape[0] - 1 if pieces is not None else None,
    )


def count_columns_header_bytes(beginning: bytes) -> int:
    """Count the bytes of a file that must be there to parse its header, by its beginning."""
    return safetensors_header.count_header_bytes(beginning, MAX_HEADER_BYTES)


def _foreign(stream: IO[bytes]) -> ColumnsRefused | None:
    """Refusal of a file of another program; None where it is safetensors, or not known."""
    found = foreign.of_file(stream, stream.seek(0, os.SEEK_END))
    if found is None or found.serves == foreign.CHECKPOINT:
        return None
    return ColumnsRefused(
        f"expected a safetensors file of columns, as `prescore.Recorder` writes it, found "
        f"{found.what}; deploy/guide/file-formats.md has the format"
    )


def _check_metadata(metadata: Mapping[str, str]) -> None:
    missing = [name for name in _REQUIRED_METADATA if name not in metadata]
    if missing:
        raise _wrong(
            missing[0],
            f"expected the metadata {', '.join(_REQUIRED_METADATA)}; missing: {', '.join(missing)}",
        )
    try:
        check_metadata_sizes(metadata, long=("images", "vocabulary"))
    except InvalidCheckpoint as error:
        raise ColumnsRefused(error.detail) from None
    if metadata["prescore_columns"] != FORMAT:
        found = f"{metadata['prescore_columns']!r:.60}"
        raise _wrong("prescore_columns", f"expected {FORMAT!r}, found {found}")
    _check_tokenizer(metadata, "tokenizer", "`karpathy`, `blanks` or the name of another tokenizer")
    model = metadata["model"]
    if len(model) > MAX_MODEL or not is_plain(model):
        raise _wrong(
            "model",
            f"expected a text of at most {MAX_MODEL} characters, none of them a control character; "
            f"found {model!r:.60}",
        )


def _check_tokenizer(metadata: Mapping[str, str], entry: str, expected: str) -> None:
    if not _TOKENIZER.fullmatch(metadata[entry]):
        raise _wrong(
            entry,
            f"expected {expected}: 1 to 100 letters, digits and ._@:/+- in ASCII; "
            f"found {metadata[entry]!r:.60}",
        )


def _pieces(metadata: Mapping[str, str], tensors: Mapping[str, TensorEntry]) -> str | None:
    """The tokenizer of pieces, which is there where pieces make words."""
    if (_OF_PIECES in metadata) != ("word_offsets" in tensors):
        raise ColumnsRefused(
            "expected both the metadata `pieces` and the tensor `word_offsets`, or neither; "
            "found one alone"
        )
    if _OF_PIECES not in metadata:
        return None
    _check_tokenizer(metadata, _OF_PIECES, "the name of the tokenizer of pieces")
    return metadata[_OF_PIECES]


def _images(metadata: Mapping[str, str]) -> tuple[str, ...]:
    names = _list(metadata, "images", limits.IMAGES)
    if not names:
        raise _wrong("images", "expected at least one name, found none")
    for place, name in enumerate(names):
        if not 0 < len(name) <= limits.IMAGE or not name.isprintable():
            raise _wrong(
                f"images/{place}",
                f"expected a name of 1 to {limits.IMAGE} printable characters, found {name!r:.60}",
            )
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise _wrong("images", f"expected each image once, found {twice!r:.100} twice")
    return tuple(names)


def _vocabulary(metadata: Mapping[str, str]) -> tuple[str, ...] | None:
    if "vocabulary" not in metadata:
        return None
    words = _list(metadata, "vocabulary", MAX_WORDS)
    for place, word in enumerate(words):
        if len(word.encode()) > MAX_WORD_BYTES or not is_plain(word):
            raise _wrong(
                f"vocabulary/{place}",
                f"expected at most {MAX_WORD_BYTES} bytes and no control character (write a line "
                f"end as \\n with a backslash), found {word!r:.60}",
            )
    return tuple(words)


def _list(metadata: Mapping[str, str], name: str, at_most: int) -> list[str]:
    try:
        return safetensors_header.parse_string_list(metadata[name], at_most)
    except strict_json.NotJson as error:
        raise _wrong(f"{name}{error.where}", str(error)) from None
    except InvalidCheckpoint as error:
        raise _wrong(name, error.detail) from None


def _check_names(tensors: Mapping[str, TensorEntry], vocabulary: tuple[str, ...] | None) -> None:
    missing = [name for name in _REQUIRED if name not in tensors]
    unknown = sorted(set(tensors) - set(_DTYPES))
    if missing or unknown:
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"unknown: {', '.join(map(repr, unknown))[:300]}"] if unknown else []
        raise ColumnsRefused(
            f"expected the tensors {', '.join(_REQUIRED)} and, if wanted, "
            f"{', '.join(name for name in _DTYPES if name not in _REQUIRED)}; {'; '.join(parts)}"
        )
    if ("top_ids" in tensors) != ("top_logp" in tensors):
        raise ColumnsRefused("expected both `top_ids` and `top_logp`, or neither; found one alone")
    of_words = [name for name in _OF_WORDS if name in tensors]
    if of_words and vocabulary is None:
        raise _wrong("vocabulary", f"expected the words of `{of_words[0]}`, found none")


def _check_shapes(tensors: Mapping[str, TensorEntry], images: int) -> tuple[int, int, int]:
    """The numbers of tokens, of references, and of words at each token."""
    for name, tensor in tensors.items():
        if tensor.dtype not in _DTYPES[name]:
            expected = " or ".join(_DTYPES[name])
            raise _odd(name, f"expected a dtype of {expected}, found {tensor.dtype}")
    tokens = _length(tensors, "logp", limits.COLUMN_TOKENS, "tokens")
    references = _length(tensors, "caption_offsets", tokens + 1, "offsets") - 1
    top = _width(tensors)
    shapes = {name: (tokens, top) if name in _MATRICES else (tokens,) for name in tensors}
    shapes |= {"caption_offsets": (references + 1,), "image_offsets": (images + 1,)}
    if "word_offsets" in tensors:
        shapes["word_offsets"] = (_length(tensors, "word_offsets", tokens + 1, "offsets"),)
    for name, tensor in tensors.items():
        if tensor.shape != shapes[name]:
            raise _odd(
                name,
                f"expected the shape {list(shapes[name])} ({count_noun(tokens, 'token')}, "
                f"{count_noun(references, 'reference')}, {count_noun(images, 'image')}), "
                f"found {list(tensor.shape)!s:.100}",
            )
    return tokens, references, top


def _length(tensors: Mapping[str, TensorEntry], name: str, at_most: int, what: str) -> int:
    shape = tensors[name].shape
    if len(shape) != 1 or not 0 < shape[0] <= at_most:
        found = f"{list(shape)!s:.100}"
        raise _odd(name, f"expected a vector of 1 to {at_most:,} {what}, found the shape {found}")
    return shape[0]


def _width(tensors: Mapping[str, TensorEntry]) -> int:
    if "top_ids" not in tensors:
        return 0
    shape = tensors["top_ids"].shape
    if len(shape) != 2 or not 0 < shape[1] <= limits.TOP_WORDS:
        raise _odd(
            "top_ids",
            f"expected 1 to {limits.TOP_WORDS} words at each token, "
            f"found the shape {list(shape)!s:.100}",
        )
    return shape[1]


def _wrong(entry: str, text: str) -> ColumnsRefused:
    name = entry.partition("/")[0]
    return ColumnsRefused(f"{name}: {text}", pointer=f"/__metadata__/{entry}")


def _odd(tensor: str, text: str) -> ColumnsRefused:
    return ColumnsRefused(f"tensor {tensor}: {text}", pointer=f"/{tensor}")
