"""Files of columns as bytes, made with json and struct alone: a second implementation of the format
in deploy/guide/file-formats.md.
"""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from helpers.contract_files import safetensors_file

# Three references of two images: 2 + 1 captions of 3, 2 and 4 tokens, END included.
IMAGES = ("a.jpg", "b.jpg")
WORDS = ("<edge>", "<unk>", "a", "cat", "sat")
LOGP = [math.log(p) for p in (0.5, 0.25, 0.125, 1.0, 0.3, 0.4, 0.2, 0.1, 0.9)]
RANK = [0, 1, 2, 0, 1, 0, 3, 4, 0]
TENSORS: dict[str, tuple[str, Sequence[int], Sequence[float]]] = {
    "logp": ("F32", (9,), LOGP),
    "rank": ("U16", (9,), RANK),
    "caption_offsets": ("I64", (4,), [0, 3, 5, 9]),
    "image_offsets": ("I64", (3,), [0, 2, 3]),
}
BEST = [math.log(p) for p in (0.5, 0.3, 0.4, 1.0, 0.5, 0.4, 0.25, 0.3, 0.9)]
WITH_WORDS = TENSORS | {
    "ids": ("U16", (9,), [2, 3, 0, 4, 0, 2, 3, 4, 0]),
    "top_ids": ("U16", (9, 1), [2, 2, 2, 4, 3, 2, 2, 2, 0]),
    "top_logp": ("F32", (9, 1), BEST),
    "entropy": ("F32", (9,), [0.5] * 9),
}
# The first two tokens are pieces of one word, and so are the sixth and the seventh.
WITH_PIECES = WITH_WORDS | {"word_offsets": ("I64", (8,), [0, 2, 3, 4, 5, 7, 8, 9])}
METADATA = {
    "prescore_columns": "1",
    "images": json.dumps(IMAGES),
    "tokenizer": "own",
    "model": "a model",
}
_CODES = {"F32": "f", "F64": "d", "I64": "q", "U16": "H", "U32": "I"}


def columns(
    tensors: Mapping[str, tuple[str, Sequence[int], Sequence[float]] | None] | None = None,
    metadata: Mapping[str, str | None] | None = None,
    base: Mapping[str, tuple[str, Sequence[int], Sequence[float]]] = TENSORS,
) -> bytes:
    """A right file of `base`, changed by the arguments; None removes an entry."""
    header: dict[str, Any] = {}
    data = b""
    for name, found in ({**base, **(tensors or {})}).items():
        if found is not None:
            dtype, shape, values = found
            packed = struct.pack(f"<{len(values)}{_CODES[dtype]}", *values)
            offsets = [len(data), len(data) + len(packed)]
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
            data += packed
    words = {"vocabulary": json.dumps(WORDS)} if "ids" in base else {}
    pieces = {"pieces": "bpe"} if "word_offsets" in base else {}
    described = {**METADATA, **words, **pieces, **(metadata or {})}
    header["__metadata__"] = {name: text for name, text in described.items() if text is not None}
    return safetensors_file(header, data)


def changed(
    name: str, place: int, value: float, base: Mapping[str, Any] = TENSORS
) -> dict[str, tuple[str, Sequence[int], Sequence[float]]]:
    """A tensor with one other value."""
    dtype, shape, values = base[name]
    return {name: (dtype, shape, [*values[:place], value, *values[place + 1 :]])}
