"""Map files: which layers of somebody's model are which of a captioner."""

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.contract.errors import InvalidPackage
from service.contract.formats.architectures import (
    MAX_HEADS,
    RECURRENT,
    Inputs,
    Places,
    RecurrentArchitecture,
)
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.formats.vocabularies import ModelTokenizer
from service.contract.wording import describe_field_error

# Beside every map's own: what layers of torch count, and what no captioner computes with.
IGNORED = ("*.num_batches_tracked",)

Name = str
Names = Name | list[Name]  # of layers one after the other


class MapTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SpecialWords(MapTable):
    start: str
    end: str
    unknown: str


class MapBase(MapTable):
    normalize: Literal["l2", "none"]  # no default: a wrong one is wrong in silence
    tokenizer: ModelTokenizer = "karpathy"
    ignore: list[str] = Field(default=[], max_length=1000)  # patterns of tensors that count nothing
    encoder: FeatureEncoder | None = None  # None: the dataset's, which a command is given
    words: SpecialWords

    def ignores(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in (*IGNORED, *self.ignore))


def list_layer_names(names: Names) -> list[Name]:
    return [names] if isinstance(names, str) else names


Bend = Literal["tanh", "relu"]


class LayerOrder(MapTable):
    """Order of the vectors that an architecture joins; each stands once, as in the default."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        for name, field in type(self).model_fields.items():
            given = getattr(self, name)
            if sorted(given) != sorted(field.default):
                raise ValueError(
                    f"expected each of {', '.join(field.default)} once, found {', '.join(given)}"
                )
        return self


class _AttentionLayers(MapTable):
    """Layers of attention, whose scores are a Linear of `bend(key(place) + query(state))`."""

    key: Names
    query: Name
    score: Name
    embedding: Name
    output: Name  # Linear, or the embedding itself where they are one


class SoftLayers(_AttentionLayers):
    state: Names  # of the mean of the places
    memory: Names
    gate: Name | None = None  # of one number, or of one for each feature; None: there is none
    cell: Name
    deep: Name | None = None  # Linear of state and context, added to the word; None: the state


class SoftOrder(LayerOrder):
    cell: tuple[Literal["word", "context"], Literal["word", "context"]] = ("word", "context")
    deep: tuple[Literal["state", "context"], Literal["state", "context"]] = ("state", "context")


# An activation or a number of heads, which no tensor shows, has no default where public codes
# differ: a wrong one would not be noticed.
class SoftMap(MapBase):
    architecture: Literal["soft_attention"]
    inputs: Places
    scores: Bend
    start: Literal["tanh", "linear"]
    layers: SoftLayers
    order: SoftOrder = SoftOrder()


class AdaptiveLayers(_AttentionLayers):
    places: Names  # relu follows
    image: Names  # of the mean of the places; relu follows
    cell: Name
    sentinel: Name  # of what the cell reads
    sentinel_state: Name  # of the state before
    sentinel_key: Names


class AdaptiveOrder(LayerOrder):
    cell: tuple[Literal["word", "image"], Literal["word", "image"]] = ("word", "image")


class AdaptiveMap(MapBase):
    architecture: Literal["adaptive_attention"]
    inputs: Places
    scores: Bend = "tanh"
    layers: AdaptiveLayers
    order: AdaptiveOrder = AdaptiveOrder()


Look = Literal["state", "image", "word"]
Speak = Literal["context", "state"]


class BottomUpLayers(_AttentionLayers):
    places: Names | None = None  # relu follows; None: places are looked at as they are
    places_norm: Name | None = None  # BatchNorm1d after that relu
    image: Names | None = None  # of the mean of the places; relu follows
    look: Name  # the LSTM that reads the other one's state, the image and the word
    speak: Name  # the LSTM that reads what was looked at, and the first one's state

    @model_validator(mode="after")
    def _are_both(self) -> Self:
        if (self.places is None) != (self.image is None):
            raise ValueError("expected `places` and `image`, or neither")
        if self.places is None and self.places_norm is not None:
            raise ValueError("expected `places` beside `places_norm`")
        return self


class BottomUpOrder(LayerOrder):
    look: tuple[Look, Look, Look] = ("state", "image", "word")
    speak: tuple[Speak, Speak] = ("context", "state")


class BottomUpMap(MapBase):
    architecture: Literal["bottom_up_top_down"]
    inputs: Places
    scores: Bend = "tanh"
    embedded: Literal["linear", "relu"]  # what becomes of a word's row
    layers: BottomUpLayers
    order: BottomUpOrder = BottomUpOrder()


class TransformerLayers(MapTable):
    embedding: Name
    image: Names | None = None  # of each place; None: places are as long as words
    decoder: Name  # TransformerDecoder
    positions: Name | None = None  # a tensor of waves, which are compared with ours
    output: Name


class TransformerMap(MapBase):
    architecture: Literal["transformer"]
    inputs: Places
    heads: int = Field(ge=1, le=MAX_HEADS)
    scale: Literal["root", "none"]  # "root": words are multiplied by the root of their size
    norms: Literal["after", "before"]
    activation: Literal["relu", "gelu"]
    layers: TransformerLayers


PlacesMap = SoftMap | AdaptiveMap | BottomUpMap | TransformerMap


MAX_MAP_BYTES = 100_000


class RecurrentLayers(MapTable):
    image: Names  # Linear, or Linear and BatchNorm1d one after the other
    embedding: Name
    cell: Name  # LSTM, GRU, LSTMCell or GRUCell
    output: Name  # Linear, or the embedding itself where they are one
    initial: Name | None = None  # par and merge: the first state; None: zeros


class RecurrentOrder(LayerOrder):
    cell: tuple[Literal["image", "word"], Literal["image", "word"]] = ("image", "word")
    output: tuple[Literal["image", "state"], Literal["image", "state"]] = ("image", "state")


class RecurrentMap(MapBase):
    architecture: RecurrentArchitecture
    layers: RecurrentLayers
    order: RecurrentOrder = RecurrentOrder()

    @property
    def images(self) -> list[Name]:
        return list_layer_names(self.layers.image)

    @property
    def inputs(self) -> Inputs:
        return "features"


AnyMap = RecurrentMap | PlacesMap
_MAPS: Mapping[str, type[AnyMap]] = {
    **dict.fromkeys(RECURRENT, RecurrentMap),
    "soft_attention": SoftMap,
    "adaptive_attention": AdaptiveMap,
    "bottom_up_top_down": BottomUpMap,
    "transformer": TransformerMap,
}


def parse_map(text: str) -> AnyMap:
    """Parse a map. Raises InvalidPackage with the place of the first fault."""
    if len(text.encode()) > MAX_MAP_BYTES:
        raise InvalidPackage(f"map: at most {MAX_MAP_BYTES} bytes are accepted")
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
        raise InvalidPackage(f"map, {where or 'whole'}: {describe_field_error(first)}") from None
