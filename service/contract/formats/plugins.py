"""Checkpoints of plug-ins: safetensors files that a package on the workers opens.

Its metadata says all that can be judged without that package, which the service does not have:
which plug-in, words or pieces, the encoder of image features. `config` is the plug-in's own, except
for `feature_size`.
"""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from pydantic import Field, model_validator

from service.contract.errors import (
    ConfigInvalid,
    InvalidCheckpoint,
    MetadataInvalid,
    TensorMismatch,
)
from service.contract.formats import safetensors_header, strict_json
from service.contract.formats.architectures import MAX_FEATURE_SIZE
from service.contract.formats.checkpoint_header import (
    FeatureEncoder,
    check_metadata_sizes,
    parse_metadata_entry,
)
from service.contract.formats.safetensors_header import TensorEntry
from service.contract.formats.strict_json import JsonPart
from service.contract.formats.vocabularies import (
    MAX_VOCABULARY,
    MODEL_TOKENIZERS,
    ModelTokenizer,
    parse_vocabulary,
)

MARK = "prescore_plugin"
GROUP = "prescore.captioners"  # of entry points
TOKENIZER = "tokenizer.json"
_OURS = "prescore"  # metadata that a canonical checkpoint has
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,99})")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,99}")
_REQUIRED = (MARK, "config", "encoder")
_OF_WORDS, _OF_PIECES = ("tokenizer", "vocabulary"), (TOKENIZER, "pieces")
_LONG = ("vocabulary", TOKENIZER)
_FLOATS = ("F64", "F32", "F16", "BF16")
_MAX_STRUCTURE = 200_000  # about 4,500 tensors
_MAX_KEYS = 1_000  # of an object in the config


@dataclass(frozen=True)
class InstalledPlugin:
    """A plug-in as it is installed: its name, and the package that has it."""

    name: str
    package: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} ({self.package} {self.version})"

    @property
    def signed(self) -> str:
        return f"{self.name}@{self.package}-{self.version}"

    def asdict(self) -> dict[str, str]:
        return asdict(self)

    def oddity(self) -> str | None:
        """Find its fault: its names are parts of signatures and of keys."""
        for what, text, pattern in (
            ("name", self.name, _NAME),
            ("package", self.package, _PACKAGE),
            ("version", self.version, _VERSION),
        ):
            if not pattern.fullmatch(text):
                return f"expected a {what} like {pattern.pattern}, found {text!r:.100}"
        return None


class PluginPieces(JsonPart):
    """`size`: of the ids; `longest`: tokens that the model reads of a caption, START among them."""

    size: int = Field(ge=2, le=MAX_VOCABULARY)
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    longest: int = Field(ge=2, le=100_000)

    @model_validator(mode="after")
    def _within(self) -> "PluginPieces":
        if max(self.start, self.end) >= self.size:
            raise ValueError("expected start and end below size")
        return self


@dataclass(frozen=True)
class PluginWords:
    tokenizer: ModelTokenizer
    vocabulary: tuple[str, ...]


@dataclass(frozen=True)
class PluginHeader:
    """`tokens`: words, or pieces by the tokenizer in `tokenizer_json`."""

    plugin: str
    config: Mapping[str, Any]
    encoder: FeatureEncoder
    tokens: PluginWords | PluginPieces
    tokenizer_json: str | None
    notes: Mapping[str, str]
    tensors: Mapping[str, TensorEntry]

    @property
    def feature_size(self) -> int:
        return int(self.config["feature_size"])

    @property
    def parameters(self) -> int:
        floats = (each for each in self.tensors.values() if each.dtype in _FLOATS)
        return sum(math.prod(each.shape) for each in floats)

    @property
    def units(self) -> str:
        return "pieces" if isinstance(self.tokens, PluginPieces) else "words"

    @property
    def longest(self) -> int | None:
        """The longest caption in tokens, START not counted; None: any."""
        return self.tokens.longest - 1 if isinstance(self.tokens, PluginPieces) else None

    @property
    def vocabulary_size(self) -> int:
        return (
            self.tokens.size
            if isinstance(self.tokens, PluginPieces)
            else len(self.tokens.vocabulary)
        )


def is_plugin_stream(stream: IO[bytes]) -> bool:
    """Tell whether a safetensors file, or its beginning, says that a plug-in opens it.
    A canonical checkpoint may have a note of that name.
    """
    raw = stream.read(8)
    length = int.from_bytes(raw, "little")
    raw += stream.read(length) if length <= safetensors_header.MAX_HEADER_BYTES else b""
    stream.seek(0)
    if f'"{MARK}"'.encode() not in raw:
        return False
    try:
        found = safetensors_header.read_safetensors_header(
            stream, math.inf, max_structure=_MAX_STRUCTURE
        )
    except InvalidCheckpoint:
        return False
    finally:
        stream.seek(0)
    return MARK in found.metadata and _OURS not in found.metadata


def is_plugin_file(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return is_plugin_stream(stream)


def read_plugin_header(path: Path) -> PluginHeader:
    with path.open("rb") as stream:
        return parse_plugin_header(stream, path.stat().st_size)


def parse_plugin_header(stream: IO[bytes], file_bytes: float) -> PluginHeader:
    """Read only the header; raises an InvalidCheckpoint that says what is wrong. `file_bytes` is
    infinity where nobody knows the file's length yet.
    """
    stream.seek(0, os.SEEK_SET)
    header = safetensors_header.read_safetensors_header(
        stream, file_bytes, max_structure=_MAX_STRUCTURE
    )
    metadata = header.metadata
    check_metadata_sizes(metadata, _LONG)
    has_pieces = any(name in metadata for name in _OF_PIECES)
    needed = (*_REQUIRED, *(_OF_PIECES if has_pieces else _OF_WORDS))
    _check_present(metadata, needed)
    if not header.tensors:
        raise TensorMismatch("expected tensors, found none")
    encoder = parse_metadata_entry(FeatureEncoder, metadata, "encoder")
    if (oddity := encoder.oddity()) is not None:
        raise ConfigInvalid(oddity, pointer="/__metadata__/encoder")
    return PluginHeader(
        plugin=_name(metadata[MARK]),
        config=_config(metadata["config"]),
        encoder=encoder,
        tokens=parse_metadata_entry(PluginPieces, metadata, "pieces")
        if has_pieces
        else _words(metadata),
        tokenizer_json=_tokenizer_json(metadata[TOKENIZER]) if has_pieces else None,
        notes={name: text for name, text in metadata.items() if name not in needed},
        tensors=header.tensors,
    )


def _check_present(metadata: Mapping[str, str], needed: tuple[str, ...]) -> None:
    missing = [name for name in needed if name not in metadata]
    both = [name for name in (*_OF_WORDS, *_OF_PIECES) if name in metadata and name not in needed]
    if missing or both:
        raise MetadataInvalid(
            f"expected the metadata {', '.join(_REQUIRED)}, and {' and '.join(_OF_WORDS)} of words "
            f"or {' and '.join(_OF_PIECES)} of pieces; "
            + (f"missing: {', '.join(missing)}" if missing else f"too many: {', '.join(both)}"),
            pointer=f"/__metadata__/{(missing or both)[0]}",
        )


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise MetadataInvalid(
            f"{MARK}: expected the name of an entry point, {_NAME.pattern}, found {text!r:.80}",
            pointer=f"/__metadata__/{MARK}",
        )
    return text


def _config(text: str) -> Mapping[str, Any]:
    pointer = "/__metadata__/config"
    value = strict_json.parse_object(text, "config", pointer, _MAX_KEYS)
    size = value.get("feature_size")
    if type(size) is not int or not 1 <= size <= MAX_FEATURE_SIZE:
        raise ConfigInvalid(
            "config/feature_size: expected the size of an image's features, a whole number from 1 "
            f"to {MAX_FEATURE_SIZE:,}, found {size!r:.60}",
            pointer=f"{pointer}/feature_size",
        )
    return value


def _words(metadata: Mapping[str, str]) -> PluginWords:
    for name in MODEL_TOKENIZERS:
        if metadata["tokenizer"] == name:
            words = parse_vocabulary(
                metadata["vocabulary"], "vocabulary", "/__metadata__/vocabulary"
            )
            return PluginWords(name, words)
    raise MetadataInvalid(
        f"tokenizer: expected {' or '.join(map(repr, MODEL_TOKENIZERS))}, found "
        f"{metadata['tokenizer']!r:.60}; of pieces, {' and '.join(_OF_PIECES)} take its place",
        pointer="/__metadata__/tokenizer",
    )


def _tokenizer_json(text: str) -> str:
    """Check how it begins; the tokenizers' own library judges the rest, on a worker."""
    if not text.lstrip().startswith("{"):
        raise MetadataInvalid(
            f"{TOKENIZER}: expected the content of a tokenizer.json, found {text[:40]!r}",
            pointer=f"/__metadata__/{TOKENIZER}",
        )
    return text
