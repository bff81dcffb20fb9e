"""Decoders of words whose heads are turned by their positions: Gemma, Llama, Qwen2."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from service.contract.formats.huggingface.families.in_places import Text
from service.contract.formats.huggingface.parts import (
    Activation,
    Heads,
    Inner,
    Layers,
    Positions,
    Shapes,
    Small,
    Width,
    Words,
    inside,
    linear,
)
from service.contract.formats.huggingface.reading import Part

Head = Annotated[int, Field(ge=2, le=1_024, multiple_of=2)]


class _Rope(Part):
    rope_theta: Annotated[float, Field(gt=1, le=1e9, allow_inf_nan=False)] = 10_000.0
    rope_type: Literal["default"] = "default"


class Rotary(Text):
    intermediate_size: Inner
    num_hidden_layers: Layers
    num_attention_heads: Heads
    num_key_value_heads: Heads | None = None
    head_dim: Head | None = None
    hidden_act: Activation = "silu"
    rms_norm_eps: Small = 1e-6
    rope_parameters: Annotated[_Rope, inside(any=_Rope)] = _Rope()

    @model_validator(mode="before")
    @classmethod
    def _turned(cls, value: Any) -> Any:
        """As older versions wrote it."""
        if not isinstance(value, dict) or not isinstance(value.get("rope_theta"), int | float):
            return value
        rest = {name: each for name, each in value.items() if name != "rope_theta"}
        return {"rope_parameters": {"rope_theta": float(value["rope_theta"])}, **rest}

    @model_validator(mode="after")
    def _divided(self) -> Self:
        heads, pairs = self.num_attention_heads, self.num_key_value_heads or 1
        if heads % pairs:
            raise ValueError(f"expected num_attention_heads that {pairs} divides, found {heads}")
        if self.head_dim is None and (self.hidden_size % heads or self.hidden_size // heads % 2):
            raise ValueError(
                f"expected a hidden_size of which each of {heads} heads has an even part, found "
                f"{self.hidden_size}"
            )
        return self

    @property
    def biased(self) -> bool:
        """Queries, keys and values."""
        return False

    def shapes(self, at: str) -> Shapes:
        d, heads = self.hidden_size, self.num_attention_heads
        size, pairs = self.head_dim or d // heads, self.num_key_value_heads or heads
        found: Shapes = {
            f"{at}.embed_tokens.weight": (self.vocab_size, d),
            f"{at}.norm.weight": (d,),
        }
        for number in range(self.num_hidden_layers):
            layer = f"{at}.layers.{number}"
            for name, many in {"q": heads, "k": pairs, "v": pairs}.items():
                place = f"{layer}.self_attn.{name}_proj"
                found |= linear(place, many * size, d, bias=self.biased)
            found |= linear(f"{layer}.self_attn.o_proj", d, heads * size, bias=False)
            for name in ("gate_proj", "up_proj"):
                found |= linear(f"{layer}.mlp.{name}", self.intermediate_size, d, bias=False)
            found |= linear(f"{layer}.mlp.down_proj", d, self.intermediate_size, bias=False)
            found[f"{layer}.input_layernorm.weight"] = (d,)
            found[f"{layer}.post_attention_layernorm.weight"] = (d,)
        return found


class Gemma(Rotary):
    harmless = frozenset({"num_image_tokens", "hidden_activation"})

    model_type: Literal["gemma"] = "gemma"
    vocab_size: Words = 257_152
    hidden_size: Width = 2048
    intermediate_size: Inner = 16_384
    num_hidden_layers: Layers = 18
    num_attention_heads: Heads = 8
    num_key_value_heads: Heads = 1
    head_dim: Head = 256
    hidden_act: Activation = "gelu_pytorch_tanh"
    max_position_embeddings: Positions = 8192
    attention_bias: Literal[False] = False
    use_bidirectional_attention: Literal[True] | None = None
    tie_word_embeddings: Literal[True] = True


class Llama(Rotary):
    harmless = frozenset({"pretraining_tp"})

    model_type: Literal["llama"]
    vocab_size: Words = 32_000
    hidden_size: Width = 4096
    intermediate_size: Inner = 11_008
    num_hidden_layers: Layers = 32
    num_attention_heads: Heads = 32
    max_position_embeddings: Positions = 2048
    attention_bias: Literal[False] = False
    mlp_bias: Literal[False] = False
    tie_word_embeddings: bool = False


class Qwen2(Rotary):
    harmless = frozenset({"sliding_window", "max_window_layers"})

    model_type: Literal["qwen2"]
    vocab_size: Words = 151_936
    hidden_size: Width = 4096
    intermediate_size: Inner = 22_016
    num_hidden_layers: Layers = 32
    num_attention_heads: Heads = 32
    num_key_value_heads: Heads | None = 32
    max_position_embeddings: Positions = 32_768
    use_sliding_window: Literal[False] = False
    layer_types: Annotated[list[Literal["full_attention"]], Field(max_length=200)] | None = None
    tie_word_embeddings: bool = False

    @property
    def biased(self) -> bool:
        return True
