"""Map files: which layers of somebody's model are which of a captioner.

A map is TOML. Layers are named as the model's code names its modules; torch's own layers say by
their shapes how they are read.
"""

import tomllib
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError, model_validator

from service.contract.errors import InvalidPackage
from service.contract.formats.checkpoint_header import (
    RECURRENT,
    Inputs,
    RecurrentArchitecture,
)
from service.contract.formats.state_dicts.places import (
    AdaptiveMap,
    BottomUpMap,
    PlacesMap,
    SoftMap,
    TransformerMap,
)
from service.contract.formats.state_dicts.tables import (
    Common,
    Name,
    Names,
    Table,
    listed,
)
from service.contract.wording import told

MAX_BYTES = 100_000


class Layers(Table):
    image: Names  # Linear, or Linear and BatchNorm1d one after the other
    embedding: Name
    cell: Name  # LSTM, GRU, LSTMCell or GRUCell
    output: Name  # Linear, or the embedding itself where they are one
    initial: Name | None = None  # par and merge: the first state; None: zeros


class Order(Table):
    """What stands first where two vectors are joined."""

    cell: tuple[Literal["image", "word"], Literal["image", "word"]] = ("image", "word")
    output: tuple[Literal["image", "state"], Literal["image", "state"]] = ("image", "state")

    @model_validator(mode="after")
    def _both(self) -> "Order":
        for pair in (self.cell, self.output):
            if pair[0] == pair[1]:
                raise ValueError(f"{pair[0]!r} cannot stand in both places")
        return self


class RecurrentMap(Common):
    architecture: RecurrentArchitecture
    layers: Layers
    order: Order = Order()

    @property
    def images(self) -> list[Name]:
        """The layers of the image, one after the other."""
        return listed(self.layers.image)

    @property
    def inputs(self) -> Inputs:
        return "features"


Map = RecurrentMap | PlacesMap
_MAPS: Mapping[str, type[Map]] = {
    **dict.fromkeys(RECURRENT, RecurrentMap),
    "soft_attention": SoftMap,
    "adaptive_attention": AdaptiveMap,
    "bottom_up_top_down": BottomUpMap,
    "transformer": TransformerMap,
}


def parse(text: str) -> Map:
    """Raises InvalidPackage with the place of the first fault."""
    if len(text.encode()) > MAX_BYTES:
        raise InvalidPackage(f"map: at most {MAX_BYTES} bytes are accepted")
    try:
        read: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidPackage(f"map: expected TOML, found an error: {error!s:.200}") from None
    architecture = read.get("architecture")
    if not isinstance(architecture, str) or architecture not in _MAPS:
        raise InvalidPackage(
            f"map, architecture: expected {', '.join(_MAPS)}, found {architecture!r:.60}"
        )
    try:
        return _MAPS[architecture].model_validate(read)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidPackage(f"map, {where or 'whole'}: {told(first)}") from None
