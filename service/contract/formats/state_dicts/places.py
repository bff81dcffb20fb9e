"""Map files of captioners that look at places of an image.

What no tensor shows of them (an activation, the number of heads) has no default where public code
is not of one mind: a wrong one is wrong in silence.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from service.contract.formats.checkpoint_header.sizes import Places
from service.contract.formats.checkpoint_header.transformer import MAX_HEADS
from service.contract.formats.state_dicts.tables import Common, Name, Names, Table

Bend = Literal["tanh", "relu"]


def _are_all(given: tuple[str, ...], needed: tuple[str, ...]) -> None:
    if sorted(given) != sorted(needed):
        raise ValueError(f"expected each of {', '.join(needed)} once, found {', '.join(given)}")


class _Attention(Table):
    """Its scores are a Linear of `bend(key(place) + query(state))`."""

    key: Names
    query: Name
    score: Name
    embedding: Name
    output: Name  # Linear, or the embedding itself where they are one


class SoftLayers(_Attention):
    state: Names  # of the mean of the places
    memory: Names
    gate: Name | None = None  # of one number, or of one for each feature; None: there is none
    cell: Name
    deep: Name | None = None  # Linear of state and context, added to the word; None: the state


class SoftOrder(Table):
    """What stands first where vectors are joined."""

    cell: tuple[Literal["word", "context"], Literal["word", "context"]] = ("word", "context")
    deep: tuple[Literal["state", "context"], Literal["state", "context"]] = ("state", "context")

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        _are_all(self.cell, ("word", "context"))
        _are_all(self.deep, ("state", "context"))
        return self


class SoftMap(Common):
    architecture: Literal["soft_attention"]
    inputs: Places
    scores: Bend
    start: Literal["tanh", "linear"]
    layers: SoftLayers
    order: SoftOrder = SoftOrder()


class AdaptiveLayers(_Attention):
    places: Names  # relu follows
    image: Names  # of the mean of the places; relu follows
    cell: Name
    sentinel: Name  # of what the cell reads
    sentinel_state: Name  # of the state before
    sentinel_key: Names


class AdaptiveOrder(Table):
    """What stands first where vectors are joined."""

    cell: tuple[Literal["word", "image"], Literal["word", "image"]] = ("word", "image")

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        _are_all(self.cell, ("word", "image"))
        return self


class AdaptiveMap(Common):
    architecture: Literal["adaptive_attention"]
    inputs: Places
    scores: Bend = "tanh"
    layers: AdaptiveLayers
    order: AdaptiveOrder = AdaptiveOrder()


Look = Literal["state", "image", "word"]
Speak = Literal["context", "state"]


class BottomUpLayers(_Attention):
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


class BottomUpOrder(Table):
    """What stands first where vectors are joined."""

    look: tuple[Look, Look, Look] = ("state", "image", "word")
    speak: tuple[Speak, Speak] = ("context", "state")

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        _are_all(self.look, ("state", "image", "word"))
        _are_all(self.speak, ("context", "state"))
        return self


class BottomUpMap(Common):
    architecture: Literal["bottom_up_top_down"]
    inputs: Places
    scores: Bend = "tanh"
    embedded: Literal["linear", "relu"]  # what becomes of a word's row
    layers: BottomUpLayers
    order: BottomUpOrder = BottomUpOrder()


class TransformerLayers(Table):
    embedding: Name
    image: Names | None = None  # of each place; None: places are as long as words
    decoder: Name  # TransformerDecoder
    positions: Name | None = None  # a tensor of waves, which are compared with ours
    output: Name


class TransformerMap(Common):
    architecture: Literal["transformer"]
    inputs: Places
    heads: int = Field(ge=1, le=MAX_HEADS)
    scale: Literal["root", "none"]  # "root": words are multiplied by the root of their size
    norms: Literal["after", "before"]
    activation: Literal["relu", "gelu"]
    layers: TransformerLayers


PlacesMap = SoftMap | AdaptiveMap | BottomUpMap | TransformerMap
