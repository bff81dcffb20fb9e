"""Decoders with rotary positions: Gemma, Llama, Qwen2; and LLaVA and PaliGemma on them."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from service.contract.formats.huggingface.family import (
    Activation,
    Heads,
    Inner,
    Layers,
    PicturePrefixFamily,
    Positions,
    Shapes,
    Small,
    TextDecoderSchema,
    Width,
    Words,
    list_linear_shapes,
    read_model_type,
    require_token,
    validate_nested,
)
from service.contract.formats.huggingface.generation import GenerationSettings
from service.contract.formats.huggingface.picture_encoders import ClipSchema, SiglipSchema
from service.contract.formats.huggingface.schemas import ConfigPart

Head = Annotated[int, Field(ge=2, le=1_024, multiple_of=2)]


class _RopeSchema(ConfigPart):
    rope_theta: Annotated[float, Field(gt=1, le=1e9, allow_inf_nan=False)] = 10_000.0
    rope_type: Literal["default"] = "default"


class RotarySchema(TextDecoderSchema):
    is_biased: ClassVar[bool] = False  # queries, keys and values

    intermediate_size: Inner
    num_hidden_layers: Layers
    num_attention_heads: Heads
    num_key_value_heads: Heads | None = None
    head_dim: Head | None = None
    hidden_act: Activation = "silu"
    rms_norm_eps: Small = 1e-6
    rope_parameters: Annotated[_RopeSchema, validate_nested(any=_RopeSchema)] = _RopeSchema()

    @model_validator(mode="before")
    @classmethod
    def _turned(cls, value: Any) -> Any:
        """Move `rope_theta`, as older versions wrote it, into `rope_parameters`."""
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

    def shapes(self, at: str) -> Shapes:
        d, inner, heads = self.hidden_size, self.intermediate_size, self.num_attention_heads
        size, pairs = self.head_dim or d // heads, self.num_key_value_heads or heads
        found: Shapes = {
            f"{at}.embed_tokens.weight": (self.vocab_size, d),
            f"{at}.norm.weight": (d,),
        }
        for number in range(self.num_hidden_layers):
            layer = f"{at}.layers.{number}"
            for name, many in {"q": heads, "k": pairs, "v": pairs}.items():
                place = f"{layer}.self_attn.{name}_proj"
                found |= list_linear_shapes(place, many * size, d, bias=self.is_biased)
            found |= list_linear_shapes(f"{layer}.self_attn.o_proj", d, heads * size, bias=False)
            for name in ("gate_proj", "up_proj"):
                found |= list_linear_shapes(f"{layer}.mlp.{name}", inner, d, bias=False)
            found |= list_linear_shapes(f"{layer}.mlp.down_proj", d, inner, bias=False)
            found[f"{layer}.input_layernorm.weight"] = (d,)
            found[f"{layer}.post_attention_layernorm.weight"] = (d,)
        return found


class GemmaSchema(RotarySchema):
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


class LlamaSchema(RotarySchema):
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


class Qwen2Schema(RotarySchema):
    harmless = frozenset({"sliding_window", "max_window_layers"})
    is_biased: ClassVar[bool] = True

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


class LlavaSchema(PicturePrefixFamily):
    harmless = frozenset({"ignore_index", "vocab_size", "image_seq_length"})
    example_prompt: ClassVar[str | None] = "USER: <image>\nDescribe the picture. ASSISTANT:"

    model_type: Literal["llava"]
    vision_config: Annotated[
        Annotated[ClipSchema, Tag("clip_vision_model")]
        | Annotated[SiglipSchema, Tag("siglip_vision_model")],
        Discriminator(read_model_type),
        validate_nested(clip_vision_model=ClipSchema, siglip_vision_model=SiglipSchema),
    ]
    text_config: Annotated[
        Annotated[LlamaSchema, Tag("llama")] | Annotated[Qwen2Schema, Tag("qwen2")],
        Discriminator(read_model_type),
        validate_nested(llama=LlamaSchema, qwen2=Qwen2Schema),
    ]
    image_token_index: Annotated[int, Field(ge=0, le=1_000_000)] = 32_000
    projector_hidden_act: Activation = "gelu"
    vision_feature_select_strategy: Literal["default", "full"] = "default"
    vision_feature_layer: Annotated[int, Field(ge=-200, le=200)] = -2
    multimodal_projector_bias: bool = True
    tie_word_embeddings: bool = False

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        layers = self.vision_config.num_hidden_layers
        if not -layers - 1 <= self.vision_feature_layer <= layers:
            raise ValueError(
                f"expected a vision_feature_layer of {layers} layers, found "
                f"{self.vision_feature_layer}"
            )
        return self

    @property
    def picture(self) -> int:
        """The places of one; by `default` the first, CLIP's class, is left out."""
        return self.vision_config.places - (self.vision_feature_select_strategy == "default")

    @property
    def architecture(self) -> str:
        return f"llava-{self.text_config.model_type}"

    def shapes(self) -> Shapes:
        d, seen = self.text_config.hidden_size, self.vision_config.hidden_size
        own = self.multimodal_projector_bias
        found = self.vision_config.shapes("vision_tower")
        found |= list_linear_shapes("multi_modal_projector.linear_1", d, seen, bias=own)
        found |= list_linear_shapes("multi_modal_projector.linear_2", d, d, bias=own)
        found |= self.text_config.shapes("language_model.model")
        if not (self.tie_word_embeddings or self.text_config.tie_word_embeddings):
            found["language_model.lm_head.weight"] = (self.vocabulary, d)
        return found

    def places(self) -> Mapping[str, int]:
        return {
            "vision_tower.": self.vision_config.places,
            "language_model.model.layers.": self.picture,
        }

    def special(self, config: Mapping[str, Any]) -> dict[str, Any]:
        usual = (
            {"bos_token_id": 1, "eos_token_id": 2} if self.text_config.model_type == "llama" else {}
        )
        return usual | super().special(config["text_config"]) | super().special(config)

    def edges(self, searched: GenerationSettings) -> tuple[int, int]:
        """START is the prompt's."""
        end = require_token(searched.eos_token_id, "eos_token_id")
        return end, end


class PaliGemmaSchema(PicturePrefixFamily):
    harmless = frozenset({"ignore_index", "hidden_size", "vocab_size"})
    example_prompt: ClassVar[str | None] = "caption en"

    model_type: Literal["paligemma"]
    vision_config: Annotated[SiglipSchema, validate_nested(any=SiglipSchema)]
    text_config: Annotated[GemmaSchema, validate_nested(any=GemmaSchema)]
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
        return self

    @property
    def picture(self) -> int:
        return self.vision_config.patches

    def shapes(self) -> Shapes:
        into = list_linear_shapes(
            "multi_modal_projector.linear", self.projection_dim, self.vision_config.hidden_size
        )
        words = self.text_config.shapes("language_model.model")
        return self.vision_config.shapes("vision_tower") | into | words

    def places(self) -> Mapping[str, int]:
        return {"vision_tower.": self.picture, "language_model.model.layers.": self.picture}

    def special(self, config: Mapping[str, Any]) -> dict[str, Any]:
        usual = {"bos_token_id": 2, "eos_token_id": 1}
        return usual | super().special(config["text_config"]) | super().special(config)
