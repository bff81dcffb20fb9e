"""Reads and checks the header of a canonical checkpoint, without reading a tensor.

Needs only the standard library and pydantic, so that the API can refuse a wrong file at once, with
a reason, and without allocating the sizes that the file claims.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.contract.errors import (
    ConfigInvalid,
    ForeignFormat,
    HeaderTooLarge,
    MetadataInvalid,
    TensorMismatch,
    VocabularyInvalid,
)
from service.contract.formats import foreign, safetensors_header, strict_json
from service.contract.formats.safetensors_header import TensorEntry
from service.contract.formats.words import TOKENIZERS, Tokenizer
from service.contract.plain_text import is_plain
from service.contract.wording import told

FORMAT = "1"
EDGE, UNK = 0, 1  # ids: START and END share one token; UNK stands for unknown words
DTYPES = ("F32", "F16", "BF16")
MAX_VOCABULARY = 250_000
MAX_WORD_BYTES = 256
MAX_METADATA = 64
MAX_SIZE = 16_384
MAX_METADATA_BYTES = 100_000  # of each entry, except the vocabulary

Architecture = Literal["init", "pre", "par", "merge"]
ARCHITECTURES: tuple[Architecture, ...] = get_args(Architecture)
WITH_IMAGE_SIZE: tuple[Architecture, ...] = ("par", "merge")  # and with a learned first state
Shapes = dict[str, tuple[int, ...]]


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    cell: Literal["gru", "lstm", "torch_gru"]
    size: int = Field(ge=1, le=MAX_SIZE)  # of the cell's state
    embedding_size: int | None = Field(default=None, ge=1, le=MAX_SIZE)  # as the state, if None
    image_size: int | None = Field(
        default=None, ge=1, le=MAX_SIZE
    )  # the same, of `par` and `merge`
    feature_size: int = Field(ge=1, le=1_048_576)
    normalize: Literal["l2", "none"] = "l2"  # what becomes of image features first

    @property
    def embedded(self) -> int:
        return self.embedding_size or self.size


class Encoder(BaseModel):
    """The encoder of image features, which must equal the dataset's."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str = Field(min_length=1, max_length=200)
    digest: str = Field(min_length=1, max_length=200)

    def __str__(self) -> str:
        return f"{self.name} ({self.digest})"

    def oddity(self) -> str | None:
        """What is wrong with it in a file that comes in: its name is shown to others, in logs and
        on terminals. Files that came in before there was such a rule are still read.
        """
        odd = next((text for text in (self.name, self.digest) if not is_plain(text)), None)
        return odd and f"encoder: expected no control characters, found {odd!r:.60}"


@dataclass(frozen=True)
class Description:
    """A checkpoint's captioner, without the weights."""

    architecture: Architecture
    config: Config
    vocabulary: tuple[str, ...]
    tokenizer: Tokenizer
    encoder: Encoder
    notes: Mapping[str, str] = field(default_factory=dict)  # other metadata


@dataclass(frozen=True)
class CheckpointHeader:
    description: Description
    tensors: Mapping[str, TensorEntry]
    data_start: int

    @property
    def parameters(self) -> int:
        return sum(math.prod(tensor.shape) for tensor in self.tensors.values())


def read(path: Path) -> CheckpointHeader:
    with path.open("rb") as stream:
        return judge(stream, path.stat().st_size)


def judge(stream: IO[bytes], file_bytes: float) -> CheckpointHeader:
    """Read only the header; raises an InvalidCheckpoint that says what is wrong. `file_bytes` is
    infinity where nobody knows the file's length yet.
    """
    there = stream.seek(0, os.SEEK_END)  # of a file that is still arriving, what has come
    refusal = foreign.refusal(foreign.of_file(stream, there), foreign.CHECKPOINT)
    if refusal is not None:
        raise ForeignFormat(refusal)
    header = safetensors_header.read(stream, file_bytes)
    metadata = _known_metadata(header.metadata)
    _one_of(metadata, "prescore", (FORMAT,))
    architecture = _one_of(metadata, "architecture", ARCHITECTURES)
    tokenizer = _one_of(metadata, "tokenizer", tuple(TOKENIZERS))
    config = _model(Config, metadata, "config")
    encoder = _model(Encoder, metadata, "encoder")
    if config.image_size is not None and architecture not in WITH_IMAGE_SIZE:
        raise ConfigInvalid(
            f"config/image_size: the image vector of {architecture} has the size of what it enters",
            pointer="/__metadata__/config/image_size",
        )
    vocabulary = _vocabulary(metadata["vocabulary"])
    _check_tensors(header.tensors, shapes(architecture, config, len(vocabulary)))
    notes = {name: text for name, text in metadata.items() if name not in _REQUIRED}
    description = Description(architecture, config, vocabulary, tokenizer, encoder, notes)
    return CheckpointHeader(description, header.tensors, header.data_start)


def check_new(header: CheckpointHeader) -> None:
    """Raise an InvalidCheckpoint for what is accepted only in files that came in long ago."""
    oddity = header.description.encoder.oddity()
    if oddity is not None:
        raise ConfigInvalid(oddity, pointer="/__metadata__/encoder")


def widths(architecture: str, config: Config) -> tuple[int, int, int]:
    """Sizes of the image vector and of the inputs of the RNN and of the output layer: m, i and o in
    the tensors' shapes.
    """
    s, e = config.size, config.embedded
    m = config.image_size or s
    return {
        "init": (s, e, s),
        "pre": (e, e, s),
        "par": (m, m + e, s),
        "merge": (m, e, m + s),
    }[architecture]


def shapes(architecture: str, config: Config, vocabulary_size: int) -> Shapes:
    """Names and shapes of a checkpoint's tensors; all matrices are (in, out)."""
    s, D, V = config.size, config.feature_size, vocabulary_size
    m, i, o = widths(architecture, config)
    result: Shapes = {
        "image.weight": (D, m),
        "image.bias": (m,),
        "embedding.weight": (V, config.embedded),
        "output.weight": (o, V),
        "output.bias": (V,),
    }
    if architecture in WITH_IMAGE_SIZE:
        result["initial"] = (s,)
    if config.cell == "lstm":
        return result | {"gates.weight": (i + s, 4 * s), "gates.bias": (4 * s,)}
    result |= {"gates.weight": (i + s, 2 * s), "gates.bias": (2 * s,)}
    result |= {"candidate.weight": (i + s, s), "candidate.bias": (s,)}
    if config.cell == "torch_gru":
        result["candidate.state_bias"] = (s,)
    return result


def metadata_of(description: Description) -> dict[str, str]:
    """The metadata that `judge` reads."""
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
    if len(metadata) > MAX_METADATA:
        raise HeaderTooLarge(f"{len(metadata)} metadata entries, at most {MAX_METADATA} accepted")
    for name, text in metadata.items():
        if name != "vocabulary" and len(text) > MAX_METADATA_BYTES:
            raise HeaderTooLarge(
                f"metadata {name!r:.100} has {len(text)} characters, "
                f"at most {MAX_METADATA_BYTES} are accepted"
            )
    return metadata


Choice = TypeVar("Choice", bound=str)


def _one_of(metadata: Mapping[str, str], name: str, allowed: tuple[Choice, ...]) -> Choice:
    for choice in allowed:
        if metadata[name] == choice:
            return choice
    raise MetadataInvalid(
        f"{name}: expected {' or '.join(map(repr, allowed))}, found {metadata[name]!r:.60}",
        pointer=f"/__metadata__/{name}",
    )


Model = TypeVar("Model", bound=BaseModel)


def _model(model: type[Model], metadata: Mapping[str, str], name: str) -> Model:
    pointer = f"/__metadata__/{name}"
    try:
        return model.model_validate(strict_json.parse(metadata[name]))
    except strict_json.NotJson as error:
        raise ConfigInvalid(f"{name}: {error}", pointer=pointer) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"/{part}" for part in first["loc"])[:100]
        raise ConfigInvalid(
            f"{name}{where}: {told(first, model.model_fields)}", pointer=pointer + where
        ) from None


def _vocabulary(text: str) -> tuple[str, ...]:
    return words_of(text, "vocabulary", "/__metadata__/vocabulary")


def words_of(text: str, what: str, pointer: str | None = None) -> tuple[str, ...]:
    """Words by their ids, of a JSON list. Raises VocabularyInvalid and HeaderTooLarge."""
    pointer = f"/{what}" if pointer is None else pointer
    try:
        words = safetensors_header.string_list(text, MAX_VOCABULARY)
    except strict_json.NotJson as error:
        raise VocabularyInvalid(f"{what}: {error}", pointer=f"{pointer}{error.where}") from None
    except HeaderTooLarge as error:
        raise HeaderTooLarge(f"{what}: {error.detail}", pointer=pointer) from None
    if len(words) < 2:
        raise VocabularyInvalid(
            f"expected at least the edge token and UNK (ids 0 and 1), found "
            f"{'one entry' if words else 'none'}",
            pointer=pointer,
        )
    seen: dict[str, int] = {}
    for index, word in enumerate(words):
        problem = _word_problem(word)
        if word in seen:
            problem = f"is also word {seen[word]}"
        if problem:
            raise VocabularyInvalid(
                f"{what}, word {index}: {word!r:.60} {problem}", pointer=f"{pointer}/{index}"
            )
        seen[word] = index
    return tuple(words)


def _word_problem(word: str) -> str | None:
    if not word:
        return "is empty"
    if len(word.encode()) > MAX_WORD_BYTES:
        return f"has {len(word.encode())} bytes, at most {MAX_WORD_BYTES} are accepted"
    if word.split() != [word]:
        return "has a blank in it; captions are words joined by blanks"
    return None


def _check_tensors(found: Mapping[str, TensorEntry], expected: Shapes) -> None:
    missing = sorted(set(expected) - set(found))
    unknown = sorted(set(found) - set(expected))
    if missing or unknown:
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"unknown: {', '.join(map(repr, unknown))[:300]}"] if unknown else []
        raise TensorMismatch(
            f"this config needs the tensors {', '.join(sorted(expected))}; {'; '.join(parts)}"
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
