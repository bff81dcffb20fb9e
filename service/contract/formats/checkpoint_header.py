"""Reads and checks the header of a canonical checkpoint, without reading a tensor.

Needs only the standard library and pydantic, so that the API can refuse a wrong file at once, with
a reason, and without allocating the sizes that the file claims.
"""

import json
import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

from pydantic import Field

from prescore import foreign
from prescore.plain_text import is_plain
from service.contract.errors import (
    ConfigInvalid,
    ForeignFormat,
    HeaderTooLarge,
    MetadataInvalid,
    TensorMismatch,
)
from service.contract.formats import safetensors_header, strict_json
from service.contract.formats.architectures import (
    ARCHITECTURE_CONFIGS,
    ARCHITECTURES,
    AnyConfig,
    Architecture,
    Shapes,
    check_config,
    list_tensor_shapes,
)
from service.contract.formats.safetensors_header import TensorEntry
from service.contract.formats.strict_json import JsonPart, Model
from service.contract.formats.vocabularies import (
    MODEL_TOKENIZERS,
    ModelTokenizer,
    parse_vocabulary,
)

FORMAT = "1"
EDGE, UNK = 0, 1  # ids: START and END share one token; UNK stands for unknown words
DTYPES = ("F32", "F16", "BF16")
MAX_METADATA = 64
MAX_METADATA_BYTES = 100_000  # of each entry, except the vocabulary
_NAMED = 20  # tensors of a config


class FeatureEncoder(JsonPart):
    """The encoder of image features, which must equal the dataset's."""

    name: str = Field(min_length=1, max_length=200)
    digest: str = Field(min_length=1, max_length=200)

    def __str__(self) -> str:
        return f"{self.name} ({self.digest})"

    def oddity(self) -> str | None:
        """Find its fault in a file that comes in: its name is shown to others. Files that came in
        before there was such a rule are still read.
        """
        odd = next((text for text in (self.name, self.digest) if not is_plain(text)), None)
        return odd and f"encoder: expected no control characters, found {odd!r:.60}"


@dataclass(frozen=True)
class CheckpointDescription:
    """A checkpoint's captioner, without the weights."""

    architecture: Architecture
    config: AnyConfig
    vocabulary: tuple[str, ...]
    tokenizer: ModelTokenizer
    encoder: FeatureEncoder
    notes: Mapping[str, str] = field(default_factory=dict)  # other metadata


@dataclass(frozen=True)
class CheckpointHeader:
    description: CheckpointDescription
    tensors: Mapping[str, TensorEntry]
    data_start: int

    @property
    def parameters(self) -> int:
        return sum(math.prod(tensor.shape) for tensor in self.tensors.values())


def read_checkpoint_header(path: Path) -> CheckpointHeader:
    with path.open("rb") as stream:
        return parse_checkpoint_header(stream, path.stat().st_size)


def parse_checkpoint_header(stream: IO[bytes], file_bytes: float) -> CheckpointHeader:
    """Read only the header; raises an InvalidCheckpoint that says what is wrong. `file_bytes` is
    infinity where nobody knows the file's length yet.
    """
    there = stream.seek(0, os.SEEK_END)  # of a file that is still arriving, what has come
    refusal = foreign.refusal(foreign.of_file(stream, there), foreign.CHECKPOINT)
    if refusal is not None:
        raise ForeignFormat(refusal)
    header = safetensors_header.read_safetensors_header(stream, file_bytes)
    metadata = _known_metadata(header.metadata)
    _one_of(metadata, "prescore", (FORMAT,))
    architecture = _one_of(metadata, "architecture", ARCHITECTURES)
    tokenizer = _one_of(metadata, "tokenizer", tuple(MODEL_TOKENIZERS))
    config: AnyConfig = parse_metadata_entry(ARCHITECTURE_CONFIGS[architecture], metadata, "config")
    encoder = parse_metadata_entry(FeatureEncoder, metadata, "encoder")
    check_config(architecture, config)
    vocabulary = parse_vocabulary(metadata["vocabulary"], "vocabulary", "/__metadata__/vocabulary")
    _check_tensors(header.tensors, list_tensor_shapes(architecture, config, len(vocabulary)))
    notes = {name: text for name, text in metadata.items() if name not in _REQUIRED}
    description = CheckpointDescription(architecture, config, vocabulary, tokenizer, encoder, notes)
    return CheckpointHeader(description, header.tensors, header.data_start)


def check_new_header(header: CheckpointHeader) -> None:
    """Raise an InvalidCheckpoint for what is accepted only in files that came in long ago."""
    oddity = header.description.encoder.oddity()
    if oddity is not None:
        raise ConfigInvalid(oddity, pointer="/__metadata__/encoder")


def dump_checkpoint_metadata(description: CheckpointDescription) -> dict[str, str]:
    """The metadata that `parse_checkpoint_header` reads."""
    return {
        **description.notes,
        "prescore": FORMAT,
        "architecture": description.architecture,
        "config": description.config.model_dump_json(exclude_defaults=True),
        "vocabulary": json.dumps(description.vocabulary, ensure_ascii=False),
        "tokenizer": description.tokenizer,
        "encoder": description.encoder.model_dump_json(),
    }


_OTHERS = f"Of what transformers has saved name the folder; {foreign.LAYERS}"
_REQUIRED = ("prescore", "architecture", "config", "vocabulary", "tokenizer", "encoder")


def _known_metadata(metadata: Mapping[str, str]) -> Mapping[str, str]:
    missing = [name for name in _REQUIRED if name not in metadata]
    if missing:
        others = "" if len(missing) < len(_REQUIRED) else f"; another program's? {_OTHERS}"
        raise MetadataInvalid(
            f"expected the metadata {', '.join(_REQUIRED)}; missing: {', '.join(missing)}{others}",
            pointer=f"/__metadata__/{missing[0]}",
        )
    check_metadata_sizes(metadata)
    return metadata


def check_metadata_sizes(
    metadata: Mapping[str, str], long: Collection[str] = ("vocabulary",)
) -> None:
    """Check the sizes of metadata. `long`: entries that have bounds of their own."""
    if len(metadata) > MAX_METADATA:
        raise HeaderTooLarge(f"{len(metadata)} metadata entries, at most {MAX_METADATA} accepted")
    for name, text in metadata.items():
        if name not in long and len(text) > MAX_METADATA_BYTES:
            raise HeaderTooLarge(
                f"metadata {name!r:.100} has {len(text)} characters, "
                f"at most {MAX_METADATA_BYTES} are accepted"
            )


Choice = TypeVar("Choice", bound=str)


def _one_of(metadata: Mapping[str, str], name: str, allowed: tuple[Choice, ...]) -> Choice:
    for choice in allowed:
        if metadata[name] == choice:
            return choice
    raise MetadataInvalid(
        f"{name}: expected {' or '.join(map(repr, allowed))}, found {metadata[name]!r:.60}",
        pointer=f"/__metadata__/{name}",
    )


def parse_metadata_entry(model: type[Model], metadata: Mapping[str, str], name: str) -> Model:
    return strict_json.parse_model(model, metadata[name], name, f"/__metadata__/{name}")


def _check_tensors(found: Mapping[str, TensorEntry], expected: Shapes) -> None:
    missing = sorted(set(expected) - set(found))
    unknown = sorted(set(found) - set(expected))
    if missing or unknown:
        parts = [f"missing: {', '.join(missing)[:300]}"] if missing else []
        parts += [f"unknown: {', '.join(map(repr, unknown))[:300]}"] if unknown else []
        raise TensorMismatch(
            f"this config needs the tensors {_several(sorted(expected))}; {'; '.join(parts)}"
        )
    for name, shape in expected.items():
        if found[name].shape != shape:
            raise TensorMismatch(
                f"tensor {name}: config and vocabulary ask for shape {list(shape)}, "
                f"found {list(found[name].shape)!s:.100}",
                pointer=f"/{name}",
            )
        if found[name].dtype not in DTYPES:
            raise TensorMismatch(
                f"tensor {name}: expected a dtype of {', '.join(DTYPES)}, "
                f"found {found[name].dtype}",
                pointer=f"/{name}",
            )


def _several(names: Sequence[str]) -> str:
    """List all names, or the first of many."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:3])} … ({len(names)} in all, deploy/guide/file-formats.md)"
