"""BLIP, and BLIP-2 with OPT, whose Q-Former's output stands before the caption."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from service.contract.formats.huggingface.family import (
    Activation,
    AttentionHeadsSchema,
    BertLikeSchema,
    Heads,
    Inner,
    Layers,
    PicturePrefixFamily,
    Positions,
    Shapes,
    Side,
    Small,
    TextDecoderSchema,
    TransformersFamily,
    Width,
    Words,
    check_heads,
    list_bert_attention_shapes,
    list_linear_shapes,
    list_norm_shapes,
    require_token,
    validate_nested,
)
from service.contract.formats.huggingface.generation import GenerationSettings
from service.contract.formats.huggingface.picture_encoders import BlipTowerSchema


class BlipTextSchema(BertLikeSchema):
    harmless = frozenset({"projection_dim", "tie_word_embeddings"})

    model_type: Literal["blip_text_model"] = "blip_text_model"
    vocab_size: Words = 30524
    num_attention_heads: Heads = 8
    bos_token_id: int = 30522
    sep_token_id: int = 102
    encoder_hidden_size: Width = 768
    add_cross_attention: bool = False  # it has it in any case


class BlipVisionSchema(BlipTowerSchema):
    harmless = frozenset({"projection_dim", "tie_word_embeddings", "add_cross_attention"})

    model_type: Literal["blip_vision_model"] = "blip_vision_model"
    image_size: Side = 384
    layer_norm_eps: Small = 1e-5


class BlipSchema(TransformersFamily):
    harmless = frozenset({"projection_dim", "logit_scale_init_value", "image_text_hidden_size"})

    model_type: Literal["blip"]
    text_config: Annotated[BlipTextSchema, validate_nested(any=BlipTextSchema)]
    vision_config: Annotated[BlipVisionSchema, validate_nested(any=BlipVisionSchema)]
    tie_word_embeddings: Literal[True] = True

    @property
    def vocabulary(self) -> int:
        return self.text_config.vocab_size

    @property
    def positions(self) -> int:
        return self.text_config.positions

    @property
    def image_size(self) -> int:
        return self.vision_config.image_size

    def shapes(self) -> Shapes:
        text = self.text_config
        found = self.vision_config.shapes("vision_model")
        found |= text.layer_shapes("text_decoder.bert", self.vision_config.hidden_size)
        return found | text.head_shapes("text_decoder.cls.predictions", tied=True)

    def places(self) -> Mapping[str, int]:
        return {"vision_model.": self.vision_config.patches + 1}

    def edges(self, searched: GenerationSettings) -> tuple[int, int]:  # noqa: ARG002  as the library does
        return self.text_config.bos_token_id, self.text_config.sep_token_id


_OFFSET = 2  # OPT's table of positions begins with two that are not used


class Blip2VisionSchema(BlipTowerSchema):
    harmless = frozenset({"projection_dim"})

    model_type: Literal["blip_2_vision_model"] = "blip_2_vision_model"
    hidden_size: Width = 1408
    intermediate_size: Inner = 6144
    num_hidden_layers: Layers = 39
    num_attention_heads: Heads = 16
    patch_size: Side = 14
    layer_norm_eps: Small = 1e-6
    qkv_bias: bool = True


class QFormerSchema(AttentionHeadsSchema):
    harmless = frozenset(
        {"vocab_size", "max_position_embeddings", "position_embedding_type", "encoder_hidden_size"}
    )

    model_type: Literal["blip_2_qformer"] = "blip_2_qformer"
    cross_attention_frequency: Annotated[int, Field(ge=1, le=200)] = 2
    use_qformer_text_input: Literal[False] = False

    def shapes(self, at: str, seen: int) -> Shapes:
        """Shapes of the Q-Former. `seen`: the width of the image's places that it looks at."""
        d, inner = self.hidden_size, self.intermediate_size
        found = list_norm_shapes(f"{at}.layernorm", d)
        for number in range(self.num_hidden_layers):
            layer = f"{at}.encoder.layer.{number}"
            parts = {"attention": d}
            if number % self.cross_attention_frequency == 0:
                parts["crossattention"] = seen
            for part, into in parts.items():
                found |= list_bert_attention_shapes(f"{layer}.{part}", "attention", d, into)
            found |= list_linear_shapes(f"{layer}.intermediate_query.dense", inner, d)
            found |= list_linear_shapes(f"{layer}.output_query.dense", d, inner)
            found |= list_norm_shapes(f"{layer}.output_query.LayerNorm", d)
        return found


class OptSchema(TextDecoderSchema):
    harmless = frozenset({"activation_dropout", "layerdrop", "init_std"})

    model_type: Literal["opt"] = "opt"
    vocab_size: Words = 50272
    hidden_size: Width = 768
    num_hidden_layers: Layers = 12
    num_attention_heads: Heads = 12
    ffn_dim: Inner = 3072
    max_position_embeddings: Positions = 2048
    word_embed_proj_dim: Width | None = None
    activation_function: Activation = "relu"
    bos_token_id: Annotated[int, Field(ge=0)] = 2
    do_layer_norm_before: Literal[True] = True
    enable_bias: Literal[True] = True
    layer_norm_elementwise_affine: Literal[True] = True
    tie_word_embeddings: Literal[True] = True

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        check_heads("hidden_size", self.hidden_size, self.num_attention_heads)
        if self.word_embed_proj_dim not in (None, self.hidden_size):
            raise ValueError(
                "expected a word_embed_proj_dim that is the hidden_size, found "
                f"{self.word_embed_proj_dim}"
            )
        return self

    def shapes(self, at: str) -> Shapes:
        d, body = self.hidden_size, f"{at}.model.decoder"
        found: Shapes = {
            f"{body}.embed_tokens.weight": (self.vocab_size, d),
            f"{body}.embed_positions.weight": (self.max_position_embeddings + _OFFSET, d),
            **list_norm_shapes(f"{body}.final_layer_norm", d),
        }
        for number in range(self.num_hidden_layers):
            layer = f"{body}.layers.{number}"
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                found |= list_linear_shapes(f"{layer}.self_attn.{name}", d, d)
            found |= list_linear_shapes(f"{layer}.fc1", self.ffn_dim, d)
            found |= list_linear_shapes(f"{layer}.fc2", d, self.ffn_dim)
            found |= list_norm_shapes(f"{layer}.self_attn_layer_norm", d)
            found |= list_norm_shapes(f"{layer}.final_layer_norm", d)
        return found


class Blip2Schema(PicturePrefixFamily):
    harmless = frozenset(
        {
            "image_text_hidden_size",
            "image_token_index",
            "tie_word_embeddings",
            "use_decoder_only_language_model",
        }
    )

    model_type: Literal["blip-2"]
    vision_config: Annotated[Blip2VisionSchema, validate_nested(any=Blip2VisionSchema)]
    qformer_config: Annotated[QFormerSchema, validate_nested(any=QFormerSchema)]
    text_config: Annotated[OptSchema, validate_nested(any=OptSchema)]
    num_query_tokens: Annotated[int, Field(ge=1, le=1_024)] = 32

    @property
    def picture(self) -> int:
        return self.num_query_tokens

    @property
    def architecture(self) -> str:
        return "blip2-opt"

    def shapes(self) -> Shapes:
        seen = self.qformer_config.hidden_size
        return {
            "query_tokens": (1, self.num_query_tokens, seen),
            **self.vision_config.shapes("vision_model", bias=self.vision_config.qkv_bias),
            **self.qformer_config.shapes("qformer", self.vision_config.hidden_size),
            **list_linear_shapes("language_projection", self.text_config.hidden_size, seen),
            **self.text_config.shapes("language_model"),
        }

    def places(self) -> Mapping[str, int]:
        return {
            "vision_model.": self.vision_config.patches + 1,
            "qformer.": self.num_query_tokens,
            "language_model.model.decoder.layers.": self.picture,
        }

    def special(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return (
            {"eos_token_id": 2} | super().special(config) | super().special(config["text_config"])
        )

    def edges(self, searched: GenerationSettings) -> tuple[int, int]:
        return self.text_config.bos_token_id, require_token(searched.eos_token_id, "eos_token_id")
