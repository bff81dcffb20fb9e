"""The config and the tensors of the Transformer decoder over places of an image."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from service.contract.formats.checkpoint_header.sizes import (
    MAX_FEATURE_SIZE,
    MAX_SIZE,
    Normalize,
    Places,
    Shapes,
)

TransformerArchitecture = Literal["transformer"]
MAX_LAYERS = 12
MAX_HEADS = 128


class TransformerConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    inputs: Places
    size: int = Field(ge=1, le=MAX_SIZE)  # of every layer's rows
    layers: int = Field(ge=1, le=MAX_LAYERS)
    heads: int = Field(ge=1, le=MAX_HEADS)
    inner_size: int | None = Field(default=None, ge=1, le=4 * MAX_SIZE)  # 4 * size, if None
    feature_size: int = Field(ge=1, le=MAX_FEATURE_SIZE)  # of a place
    normalize: Normalize = "l2"
    norms: Literal["after", "before"] = "after"  # of each part of a layer
    activation: Literal["relu", "gelu"] = "relu"  # between `inner` and `outer`
    last_norm: bool = False  # once more, after the last layer

    @model_validator(mode="after")
    def _is_split_evenly(self) -> Self:
        if self.size % self.heads:
            raise ValueError(
                f"expected a size that {self.heads} heads divide, found size {self.size}"
            )
        return self

    @property
    def inner(self) -> int:
        return self.inner_size or 4 * self.size


def shapes(architecture: str, config: TransformerConfig, vocabulary_size: int) -> Shapes:  # noqa: ARG001
    s, D, V = config.size, config.feature_size, vocabulary_size
    found: Shapes = {
        "image.weight": (D, s),
        "image.bias": (s,),
        "embedding.weight": (V, s),
        "output.weight": (s, V),
        "output.bias": (V,),
    }
    if config.last_norm:
        found |= {"norm.weight": (s,), "norm.bias": (s,)}
    for layer in range(config.layers):
        for name, (given, out) in _affine(config).items():
            found[f"layers.{layer}.{name}.weight"] = (given, out)
            found[f"layers.{layer}.{name}.bias"] = (out,)
        for name in ("words_norm", "places_norm", "inner_norm"):
            found[f"layers.{layer}.{name}.weight"] = (s,)
            found[f"layers.{layer}.{name}.bias"] = (s,)
    return found


def _affine(config: TransformerConfig) -> dict[str, tuple[int, int]]:
    s, f = config.size, config.inner
    return {
        "words": (s, 3 * s),  # queries, keys, values
        "words_out": (s, s),
        "query": (s, s),
        "places": (s, 2 * s),  # keys, values
        "places_out": (s, s),
        "inner": (s, f),
        "outer": (f, s),
    }
