"""The configs and the tensors of the LSTMs that look at places of an image anew for every word."""

from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from service.contract.errors import ConfigInvalid
from service.contract.formats.checkpoint_header.sizes import (
    MAX_FEATURE_SIZE,
    MAX_SIZE,
    Normalize,
    Places,
    Shapes,
)

AttentionArchitecture = Literal["soft_attention", "adaptive_attention", "bottom_up_top_down"]
ATTENTION: tuple[AttentionArchitecture, ...] = get_args(AttentionArchitecture)


_OPTIONS: Mapping[str, AttentionArchitecture] = {
    "start": "soft_attention",
    "gate": "soft_attention",
    "output": "soft_attention",
    "places_size": "bottom_up_top_down",
}


class AttentionConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    inputs: Places
    size: int = Field(ge=1, le=MAX_SIZE)  # of the LSTM's state
    embedding_size: int | None = Field(default=None, ge=1, le=MAX_SIZE)  # as the state, if None
    attention_size: int | None = Field(default=None, ge=1, le=MAX_SIZE)  # the same
    feature_size: int = Field(ge=1, le=MAX_FEATURE_SIZE)  # of a place
    normalize: Normalize = "l2"
    scores: Literal["tanh", "relu"] = "tanh"  # of a place's key and a state's query
    start: Literal["tanh", "linear"] = "tanh"  # soft_attention: of the first state
    gate: Literal["one", "each"] = "one"  # soft_attention: a number, or one for each feature
    output: Literal["deep", "state"] = "deep"  # soft_attention: what the output layer reads
    places_size: int | None = Field(
        default=None, ge=1, le=MAX_SIZE
    )  # bottom_up_top_down: of what a layer makes of places; they are looked at themselves, if None

    @property
    def embedded(self) -> int:
        return self.embedding_size or self.size

    @property
    def attended(self) -> int:
        return self.attention_size or self.size


def check(architecture: str, config: AttentionConfig) -> None:
    """Raise ConfigInvalid for an option that the architecture does not have."""
    for option, owner in _OPTIONS.items():
        if option in config.model_dump(exclude_defaults=True) and architecture != owner:
            raise ConfigInvalid(
                f"config/{option}: is an option of {owner}, and {architecture} has none such",
                pointer=f"/__metadata__/config/{option}",
            )


def shapes(architecture: str, config: AttentionConfig, vocabulary_size: int) -> Shapes:
    s, e, D, V = config.size, config.embedded, config.feature_size, vocabulary_size
    common: Shapes = {"embedding.weight": (V, e), "output.bias": (V,)}
    match architecture:
        case "soft_attention":
            deep = config.output == "deep"
            own = {
                **_affine("state", D, s),
                **_affine("memory", D, s),
                **_attention(config, D),
                **_affine("gate", s, D if config.gate == "each" else 1),
                **_affine("gates", e + D + s, 4 * s),
                **(_affine("deep", s + D, e) if deep else {}),
                "output.weight": (e if deep else s, V),
            }
        case "adaptive_attention":
            own = {
                **_affine("places", D, s),
                **_affine("image", D, s),
                **_affine("gates", e + s + s, 4 * s),
                **_affine("sentinel", e + s + s, s),
                **_attention(config, s),
                **_affine("sentinel_key", s, config.attended),
                "output.weight": (s, V),
            }
        case _:
            p = config.places_size or D
            made = _affine("places", D, p) | _affine("image", D, p)
            own = {
                **(made if config.places_size else {}),
                **_affine("attention_gates", s + p + e + s, 4 * s),
                **_attention(config, p),
                **_affine("language_gates", p + s + s, 4 * s),
                "output.weight": (s, V),
            }
    return common | own


def _affine(name: str, given: int, out: int) -> Shapes:
    return {f"{name}.weight": (given, out), f"{name}.bias": (out,)}


def _attention(config: AttentionConfig, seen: int) -> Shapes:
    """Of the scores of places of size `seen` for a state."""
    a = config.attended
    return {**_affine("key", seen, a), "query.weight": (config.size, a), "score.weight": (a,)}
