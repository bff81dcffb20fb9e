"""Architectures of canonical checkpoints: the config and the tensors of each, by family."""

from collections.abc import Mapping
from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from service.contract.errors import ConfigInvalid
from service.contract.formats.strict_json import JsonPart

MAX_SIZE = 16_384  # of a state, a word, a layer
MAX_FEATURE_SIZE = 1_048_576
Shapes = dict[str, tuple[int, ...]]
Places = Literal["grid", "regions"]  # what of an image is looked at, if not one vector
Inputs = Literal["features", "grid", "regions"]
Normalize = Literal["l2", "none"]  # what becomes of image features first


RecurrentArchitecture = Literal["init", "pre", "par", "merge"]
RECURRENT: tuple[RecurrentArchitecture, ...] = get_args(RecurrentArchitecture)
# And with a learned first state.
WITH_IMAGE_SIZE: tuple[RecurrentArchitecture, ...] = ("par", "merge")


class RecurrentConfig(JsonPart):
    cell: Literal["gru", "lstm", "torch_gru"]
    size: int = Field(ge=1, le=MAX_SIZE)  # of the cell's state
    embedding_size: int | None = Field(default=None, ge=1, le=MAX_SIZE)  # as the state, if None
    # The same, of `par` and `merge`.
    image_size: int | None = Field(default=None, ge=1, le=MAX_SIZE)
    feature_size: int = Field(ge=1, le=MAX_FEATURE_SIZE)
    normalize: Normalize = "l2"

    @property
    def inputs(self) -> Literal["features"]:
        return "features"

    @property
    def embedded(self) -> int:
        return self.embedding_size or self.size


def compute_recurrent_widths(architecture: str, config: RecurrentConfig) -> tuple[int, int, int]:
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


def _recurrent_shapes(architecture: str, config: RecurrentConfig, vocabulary_size: int) -> Shapes:
    s, D, V = config.size, config.feature_size, vocabulary_size
    m, i, o = compute_recurrent_widths(architecture, config)
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


AttentionArchitecture = Literal["soft_attention", "adaptive_attention", "bottom_up_top_down"]
ATTENTION: tuple[AttentionArchitecture, ...] = get_args(AttentionArchitecture)


_OPTIONS: Mapping[str, AttentionArchitecture] = {
    "start": "soft_attention",
    "gate": "soft_attention",
    "output": "soft_attention",
    "places_size": "bottom_up_top_down",
}


class AttentionConfig(JsonPart):
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
    # bottom_up_top_down: of what a layer makes of places; they are looked at themselves, if None.
    places_size: int | None = Field(default=None, ge=1, le=MAX_SIZE)

    @property
    def embedded(self) -> int:
        return self.embedding_size or self.size

    @property
    def attended(self) -> int:
        return self.attention_size or self.size


def _attention_shapes(architecture: str, config: AttentionConfig, vocabulary_size: int) -> Shapes:
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
    """Shapes of the attention that scores places of size `seen` for a state."""
    a = config.attended
    return {**_affine("key", seen, a), "query.weight": (config.size, a), "score.weight": (a,)}


TransformerArchitecture = Literal["transformer"]
MAX_LAYERS = 12
MAX_HEADS = 128


class TransformerConfig(JsonPart):
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


def _transformer_shapes(config: TransformerConfig, vocabulary_size: int) -> Shapes:
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
        for name, (given, out) in _layer_sizes(config).items():
            found[f"layers.{layer}.{name}.weight"] = (given, out)
            found[f"layers.{layer}.{name}.bias"] = (out,)
        for name in ("words_norm", "places_norm", "inner_norm"):
            found[f"layers.{layer}.{name}.weight"] = (s,)
            found[f"layers.{layer}.{name}.bias"] = (s,)
    return found


def _layer_sizes(config: TransformerConfig) -> dict[str, tuple[int, int]]:
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


Architecture = RecurrentArchitecture | AttentionArchitecture | TransformerArchitecture
AnyConfig = RecurrentConfig | AttentionConfig | TransformerConfig

ARCHITECTURE_CONFIGS: Mapping[Architecture, type[AnyConfig]] = {
    **dict.fromkeys(RECURRENT, RecurrentConfig),
    **dict.fromkeys(ATTENTION, AttentionConfig),
    "transformer": TransformerConfig,
}
ARCHITECTURES = tuple(ARCHITECTURE_CONFIGS)


def check_config(architecture: str, config: AnyConfig) -> None:
    """Raise ConfigInvalid for an option that the architecture does not have."""
    given = config.model_dump(exclude_defaults=True)
    if "image_size" in given and architecture not in WITH_IMAGE_SIZE:
        raise ConfigInvalid(
            f"config/image_size: the image vector of {architecture} has the size of what it enters",
            pointer="/__metadata__/config/image_size",
        )
    for option, owner in _OPTIONS.items():
        if option in given and architecture != owner:
            raise ConfigInvalid(
                f"config/{option}: is an option of {owner}, and {architecture} has none such",
                pointer=f"/__metadata__/config/{option}",
            )


def list_tensor_shapes(architecture: str, config: AnyConfig, vocabulary_size: int) -> Shapes:
    """Names and shapes of a checkpoint's tensors; all matrices are (in, out)."""
    match config:
        case RecurrentConfig():
            return _recurrent_shapes(architecture, config, vocabulary_size)
        case AttentionConfig():
            return _attention_shapes(architecture, config, vocabulary_size)
        case TransformerConfig():
            return _transformer_shapes(config, vocabulary_size)
