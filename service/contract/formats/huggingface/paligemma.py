"""PaliGemma: SigLIP's picture, START of the text and a prompt stand before the caption, in the
places of Gemma's words. They read all of themselves; a caption's words read what precedes them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from service.contract.formats.huggingface.parts import (
    Activation,
    Family,
    Heads,
    Inner,
    Layers,
    Patches,
    Positions,
    Shapes,
    Side,
    Small,
    Width,
    Words,
    inside,
    linear,
    norm,
)
from service.contract.formats.huggingface.reading import Part

MOST_PROMPT = 256  # tokens
_OLD_TOWER = "vision_tower.vision_model."


class Siglip(Patches):
    harmless = frozenset(
        {"num_image_tokens", "projection_dim", "projector_hidden_act", "vocab_size"}
    )

    model_type: Literal["siglip_vision_model"] = "siglip_vision_model"
    hidden_size: Width = 1152
    intermediate_size: Inner = 4096
    num_hidden_layers: Layers = 27
    num_attention_heads: Heads = 16
    patch_size: Side = 14
    hidden_act: Activation = "gelu_pytorch_tanh"
    layer_norm_eps: Small = 1e-6
    vision_use_head: Literal[False] = False

    def shapes(self, at: str) -> Shapes:
        d, patch = self.hidden_size, self.patch_size
        found: Shapes = {
            f"{at}.embeddings.patch_embedding.weight": (d, 3, patch, patch),
            f"{at}.embeddings.patch_embedding.bias": (d,),
            f"{at}.embeddings.position_embedding.weight": (self.patches, d),
            **norm(f"{at}.post_layernorm", d),
        }
        for number in range(self.num_hidden_layers):
            layer = f"{at}.encoder.layers.{number}"
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                found |= linear(f"{layer}.self_attn.{name}", d, d)
            found |= linear(f"{layer}.mlp.fc1", self.intermediate_size, d)
            found |= linear(f"{layer}.mlp.fc2", d, self.intermediate_size)
            found |= norm(f"{layer}.layer_norm1", d) | norm(f"{layer}.layer_norm2", d)
        return found


class _Rope(Part):
    rope_theta: Annotated[float, Field(gt=1, le=1e9, allow_inf_nan=False)] = 10_000.0
    rope_type: Literal["default"] = "default"


class Gemma(Part):
    harmless = frozenset({"num_image_tokens", "hidden_activation"})

    model_type: Literal["gemma"] = "gemma"
    vocab_size: Words = 257_152
    hidden_size: Width = 2048
    intermediate_size: Inner = 16_384
    num_hidden_layers: Layers = 18
    num_attention_heads: Heads = 8
    num_key_value_heads: Heads = 1
    head_dim: Annotated[int, Field(ge=2, le=1_024, multiple_of=2)] = 256
    hidden_act: Activation = "gelu_pytorch_tanh"
    max_position_embeddings: Positions = 8192
    rms_norm_eps: Small = 1e-6
    attention_bias: Literal[False] = False
    rope_parameters: Annotated[_Rope, inside(any=_Rope)] = _Rope()
    use_bidirectional_attention: Literal[True] | None = None
    bos_token_id: Annotated[int, Field(ge=0)] = 2
    tie_word_embeddings: Literal[True] = True

    @model_validator(mode="before")
    @classmethod
    def _turned(cls, value: Any) -> Any:
        """As older versions wrote it."""
        if not isinstance(value, dict) or "rope_theta" not in value:
            return value
        rest = {name: each for name, each in value.items() if name != "rope_theta"}
        return {"rope_parameters": {"rope_theta": float(value["rope_theta"])}, **rest}

    @model_validator(mode="after")
    def _divided(self) -> Self:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"expected num_attention_heads that {self.num_key_value_heads} divides, found "
                f"{self.num_attention_heads}"
            )
        return self

    def shapes(self, at: str) -> Shapes:
        d, size = self.hidden_size, self.head_dim
        found: Shapes = {
            f"{at}.embed_tokens.weight": (self.vocab_size, d),
            f"{at}.norm.weight": (d,),
        }
        heads = {"q": self.num_attention_heads, "k": self.num_key_value_heads}
        for number in range(self.num_hidden_layers):
            layer = f"{at}.layers.{number}"
            for name, many in {**heads, "v": self.num_key_value_heads}.items():
                found |= linear(f"{layer}.self_attn.{name}_proj", many * size, d, bias=False)
            found |= linear(f"{layer}.self_attn.o_proj", d, heads["q"] * size, bias=False)
            for name in ("gate_proj", "up_proj"):
                found |= linear(f"{layer}.mlp.{name}", self.intermediate_size, d, bias=False)
            found |= linear(f"{layer}.mlp.down_proj", d, self.intermediate_size, bias=False)
            found[f"{layer}.input_layernorm.weight"] = (d,)
            found[f"{layer}.post_attention_layernorm.weight"] = (d,)
        return found


class PaliGemma(Family):
    harmless = frozenset({"ignore_index", "hidden_size", "vocab_size"})
    in_places: ClassVar[bool] = True
    example_prompt: ClassVar[str | None] = "caption en"

    model_type: Literal["paligemma"]
    vision_config: Annotated[Siglip, inside(any=Siglip)]
    text_config: Annotated[Gemma, inside(any=Gemma)]
    image_token_index: Annotated[int, Field(ge=0, le=1_000_000)] = 256_000
    projection_dim: Width = 2048
    tie_word_embeddings: Literal[True] = True

    @model_validator(mode="after")
    def _projected(self) -> Self:
        if self.projection_dim != self.text_config.hidden_size:
            raise ValueError(
                f"expected a projection_dim of {self.text_config.hidden_size}, the hidden_size of "
                f"text_config, found {self.projection_dim}"
            )
        if self.positions < 2:
            raise ValueError(
                f"expected more max_position_embeddings than the {self.vision_config.patches} "
                f"places of a picture and {MOST_PROMPT} of a prompt, found "
                f"{self.text_config.max_position_embeddings}"
            )
        return self

    @property
    def vocabulary(self) -> int:
        return self.text_config.vocab_size

    @property
    def positions(self) -> int:
        return self.text_config.max_position_embeddings - self.vision_config.patches - MOST_PROMPT

    @property
    def image_size(self) -> int:
        return self.vision_config.image_size

    @property
    def architecture(self) -> str:
        return "paligemma"

    def shapes(self) -> Shapes:
        into = linear(
            "multi_modal_projector.linear", self.projection_dim, self.vision_config.hidden_size
        )
        words = self.text_config.shapes("language_model.model")
        return self.vision_config.shapes("vision_tower") | into | words

    def places(self) -> Mapping[str, int]:
        many = self.vision_config.patches
        return {"vision_tower.": many, "language_model.model.layers.": many}

    def renamed(self, tensor: str) -> str:
        if tensor.startswith(_OLD_TOWER):
            return "vision_tower." + tensor.removeprefix(_OLD_TOWER)
        return tensor

    def special(self, config: Mapping[str, Any]) -> dict[str, Any]:
        usual = {"bos_token_id": 2, "eos_token_id": 1}
        return usual | super().special(config["text_config"]) | super().special(config)
