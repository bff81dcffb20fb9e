"""Families of transformers' captioners: parts of their configs, shapes of their layers.

Defaults are the library's, since it leaves them out of what it saves.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from service.contract.errors import ConfigInvalid
from service.contract.formats.huggingface.generation import GenerationSettings
from service.contract.formats.huggingface.schemas import ConfigPart, drop_harmless

MAX_VOCABULARY = 300_000
MOST_PROMPT = 256  # tokens
_TOWER, _OLD_TOWER = "vision_tower.", "vision_tower.vision_model."
Shapes = dict[str, tuple[int, ...]]
Width = Annotated[int, Field(ge=1, le=16_384)]
Inner = Annotated[int, Field(ge=1, le=65_536)]
Layers = Annotated[int, Field(ge=1, le=200)]
Heads = Annotated[int, Field(ge=1, le=256)]
Side = Annotated[int, Field(ge=1, le=2_048)]
Words = Annotated[int, Field(ge=2, le=MAX_VOCABULARY)]
Positions = Annotated[int, Field(ge=2, le=65_536)]
Small = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Activation = Literal[
    "gelu", "gelu_fast", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "relu", "silu", "swish"
]


ATTENTION = ("query", "key", "value")


def list_linear_shapes(name: str, out: int, into: int, *, bias: bool = True) -> Shapes:
    return {f"{name}.weight": (out, into)} | ({f"{name}.bias": (out,)} if bias else {})


def list_norm_shapes(name: str, size: int) -> Shapes:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


def list_block_shapes(
    at: str, attention: str, width: int, inner: int, biased: tuple[str, ...]
) -> Shapes:
    """Block of ViT and its kin. `biased`: those of query, key and value that have a bias."""
    found = list_norm_shapes(f"{at}.layernorm_before", width)
    for name in ATTENTION:
        place = f"{at}.attention.{attention}.{name}"
        found |= list_linear_shapes(place, width, width, bias=name in biased)
    return {
        **found,
        **list_linear_shapes(f"{at}.attention.output.dense", width, width),
        **list_linear_shapes(f"{at}.intermediate.dense", inner, width),
        **list_linear_shapes(f"{at}.output.dense", width, inner),
        **list_norm_shapes(f"{at}.layernorm_after", width),
    }


def list_bert_attention_shapes(at: str, within: str, width: int, seen: int) -> Shapes:
    """List the shapes of BERT's attention: queries of size `width` over rows of size `seen`."""
    found = list_linear_shapes(f"{at}.{within}.query", width, width)
    found |= list_linear_shapes(f"{at}.{within}.key", width, seen)
    found |= list_linear_shapes(f"{at}.{within}.value", width, seen)
    return (
        found
        | list_linear_shapes(f"{at}.output.dense", width, width)
        | list_norm_shapes(f"{at}.output.LayerNorm", width)
    )


def check_heads(name: str, width: int, heads: int) -> None:
    if width % heads:
        article = "an" if name.startswith("n") else "a"
        raise ValueError(f"expected {article} {name} that {heads} heads divide, found {width}")


class AttentionHeadsSchema(ConfigPart):
    """Part of a config with heads of one size each."""

    hidden_size: Width = 768
    num_hidden_layers: Layers = 12
    num_attention_heads: Heads = 12
    intermediate_size: Inner = 3072
    hidden_act: Activation = "gelu"
    layer_norm_eps: Small = 1e-12

    @model_validator(mode="after")
    def _divided(self) -> Self:
        check_heads("hidden_size", self.hidden_size, self.num_attention_heads)
        return self


class PatchEncoderSchema(AttentionHeadsSchema):
    image_size: Side = 224
    patch_size: Side = 16
    num_channels: Literal[3] = 3

    @model_validator(mode="after")
    def _patched(self) -> Self:
        if self.image_size < self.patch_size:
            raise ValueError(f"expected an image_size of at least a patch, found {self.image_size}")
        return self

    @property
    def patches(self) -> int:
        return int((self.image_size // self.patch_size) ** 2)


class BertLikeSchema(AttentionHeadsSchema):
    vocab_size: Words
    max_position_embeddings: Positions = 512

    @property
    def width(self) -> int:
        return self.hidden_size

    @property
    def positions(self) -> int:
        return self.max_position_embeddings

    def layer_shapes(self, at: str, seen: int | None) -> Shapes:
        """Shapes of the layers. `seen`: the width of images that layers look at, if they do."""
        d, inner = self.hidden_size, self.intermediate_size
        found: Shapes = {
            f"{at}.embeddings.word_embeddings.weight": (self.vocab_size, d),
            f"{at}.embeddings.position_embeddings.weight": (self.positions, d),
            **list_norm_shapes(f"{at}.embeddings.LayerNorm", d),
        }
        for number in range(self.num_hidden_layers):
            layer = f"{at}.encoder.layer.{number}"
            parts = {"attention": d} | ({} if seen is None else {"crossattention": seen})
            for part, into in parts.items():
                found |= list_bert_attention_shapes(f"{layer}.{part}", "self", d, into)
            found |= list_linear_shapes(f"{layer}.intermediate.dense", inner, d)
            found |= list_linear_shapes(f"{layer}.output.dense", d, inner)
            found |= list_norm_shapes(f"{layer}.output.LayerNorm", d)
        return found

    def head_shapes(self, at: str, *, tied: bool) -> Shapes:
        d = self.hidden_size
        found = list_linear_shapes(f"{at}.transform.dense", d, d) | list_norm_shapes(
            f"{at}.transform.LayerNorm", d
        )
        own = {} if tied else {f"{at}.decoder.weight": (self.vocab_size, d)}
        return found | {f"{at}.bias": (self.vocab_size,)} | own


def read_model_type(value: Any) -> str:
    """Read the `model_type`, which chooses one of several schemas."""
    found = (
        value if isinstance(value, dict) else vars(value) if isinstance(value, ConfigPart) else {}
    )
    return str(found.get("model_type", "no model_type"))


def validate_nested(**kinds: type[ConfigPart]) -> BeforeValidator:
    """Validator of a nested part, by `model_type` or one for any; harmless fields are dropped
    first.
    """

    def drop(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kind = kinds.get("any") or kinds.get(str(value.get("model_type")))
        return drop_harmless(kind, value, "config.json") if kind else value

    return BeforeValidator(drop)


class TransformersFamily(ConfigPart):
    """Family of captioners: the top of a config.json."""

    in_places: ClassVar[bool] = False  # the picture stands before a caption, in places of words
    example_prompt: ClassVar[str | None] = None  # of a family that reads a prompt before a caption

    model_type: str

    @property
    def vocabulary(self) -> int:
        raise NotImplementedError

    @property
    def positions(self) -> int:
        raise NotImplementedError

    @property
    def image_size(self) -> int:
        raise NotImplementedError

    @property
    def architecture(self) -> str:
        """Architecture as people read it: `vit-gpt2`."""
        return self.model_type

    def shapes(self) -> Shapes:
        """Names and shapes of the tensors that have to be there."""
        raise NotImplementedError

    def places(self) -> Mapping[str, int]:
        """Count the places of a picture that go through tensors, by the start of their names."""
        raise NotImplementedError

    @property
    def products(self) -> int:
        """Multiply-adds of one picture, before its captions."""
        many = tuple(self.places().items())
        return sum(
            math.prod(shape) * places
            for name, shape in self.shapes().items()
            for start, places in many
            if name.startswith(start)
        )

    def renamed(self, tensor: str) -> str:
        """The name in `shapes` of a tensor. Older versions of the library named the network inside
        a tower too.
        """
        if tensor.startswith(_OLD_TOWER):
            return _TOWER + tensor.removeprefix(_OLD_TOWER)
        return tensor

    def special(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Ids of special tokens that config.json has, as generation_config.json calls them."""
        names = ("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id")
        return {name: config[name] for name in names if config.get(name) is not None}

    def edges(self, searched: GenerationSettings) -> tuple[int, int]:
        """START and END."""
        start, end = searched.bos_token_id, searched.eos_token_id
        return require_token(start, "bos_token_id"), require_token(end, "eos_token_id")


def require_token(token: int | list[int] | None, name: str) -> int:
    if isinstance(token, list) and len(token) == 1:
        return token[0]
    if not isinstance(token, int):
        raise ConfigInvalid(
            f"expected one token as {name}, in generation_config.json or config.json, found "
            f"{token!r:.60}: without it nobody can tell where captions begin and end",
            pointer=f"/config.json/{name}",
        )
    return token


class TextDecoderSchema(ConfigPart):
    vocab_size: Words
    hidden_size: Width
    max_position_embeddings: Positions


class PicturePrefixFamily(TransformersFamily):
    in_places: ClassVar[bool] = True

    vision_config: PatchEncoderSchema
    text_config: TextDecoderSchema

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.positions < 2:
            prompt = f" and {MOST_PROMPT} of a prompt" if self.example_prompt else ""
            raise ValueError(
                f"expected more max_position_embeddings than the {self.picture} places of a "
                f"picture{prompt}, found {self.text_config.max_position_embeddings}"
            )
        return self

    @property
    def picture(self) -> int:
        """The places of one."""
        raise NotImplementedError

    @property
    def vocabulary(self) -> int:
        return self.text_config.vocab_size

    @property
    def positions(self) -> int:
        """Positions that are left for a caption."""
        prompt = MOST_PROMPT if self.example_prompt else 0
        return self.text_config.max_position_embeddings - self.picture - prompt

    @property
    def image_size(self) -> int:
        return self.vision_config.image_size
