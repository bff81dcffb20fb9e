"""Map files: which layers of somebody's model are which of a captioner.

A map is TOML. Layers are named as the model's code names its modules; torch's own layers say by
their shapes how they are read.
"""

import tomllib
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.contract.errors import InvalidPackage
from service.contract.formats.checkpoint_header import Encoder, RecurrentArchitecture
from service.contract.formats.words import Tokenizer
from service.contract.wording import told

MAX_BYTES = 100_000
# Beside every map's own: what layers of torch count, and what no captioner computes with.
IGNORED = ("*.num_batches_tracked",)

Name = str
Places = Literal["image", "word", "state"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Words(_Table):
    """The special words, as the vocabulary writes them."""

    start: str
    end: str
    unknown: str


class Layers(_Table):
    image: Name | list[Name]  # Linear, or Linear and BatchNorm1d one after the other
    embedding: Name
    cell: Name  # LSTM, GRU, LSTMCell or GRUCell
    output: Name  # Linear, or the embedding itself where they are one
    initial: Name | None = None  # par and merge: the first state; None: zeros


class Order(_Table):
    """What stands first where two vectors are joined."""

    cell: tuple[Literal["image", "word"], Literal["image", "word"]] = ("image", "word")
    output: tuple[Literal["image", "state"], Literal["image", "state"]] = ("image", "state")

    @model_validator(mode="after")
    def _both(self) -> "Order":
        for pair in (self.cell, self.output):
            if pair[0] == pair[1]:
                raise ValueError(f"{pair[0]!r} cannot stand in both places")
        return self


class Map(_Table):
    architecture: RecurrentArchitecture
    normalize: Literal["l2", "none"]  # no default: a wrong one is wrong in silence
    tokenizer: Tokenizer = "karpathy"
    ignore: list[str] = Field(default=[], max_length=1000)  # patterns of tensors that count nothing
    encoder: Encoder | None = None  # None: the dataset's, which a command is given
    words: Words
    layers: Layers
    order: Order = Order()

    def ignores(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in (*IGNORED, *self.ignore))

    @property
    def images(self) -> list[Name]:
        """The layers of the image, one after the other."""
        names = self.layers.image
        return [names] if isinstance(names, str) else names


def parse(text: str) -> Map:
    """Raises InvalidPackage with the place of the first fault."""
    if len(text.encode()) > MAX_BYTES:
        raise InvalidPackage(f"map: at most {MAX_BYTES} bytes are accepted")
    try:
        read: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidPackage(f"map: expected TOML, found an error: {error!s:.200}") from None
    try:
        return Map.model_validate(read)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidPackage(f"map, {where or 'whole'}: {told(first)}") from None
