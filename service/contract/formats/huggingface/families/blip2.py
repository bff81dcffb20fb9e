"""BLIP-2 with OPT: what a Q-Former has read of a picture stands before the caption, without a
prompt, in the places of a decoder of words.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from service.contract.formats.huggingface.families.in_places import InPlaces, Text
from service.contract.formats.huggingface.families.towers import BlipTower
from service.contract.formats.huggingface.generation import Generation
from service.contract.formats.huggingface.parts import (
    Activation,
    Heads,
    Inner,
    Layers,
    Positions,
    Shapes,
    Side,
    Small,
    Width,
    WithHeads,
    Words,
    attention,
    check_heads,
    inside,
    known,
    linear,
    norm,
)

_OFFSET = 2  # OPT's table of positions begins with two that are not used


class Blip2Vision(BlipTower):
    harmless = frozenset({"projection_dim"})

    model_type: Literal["blip_2_vision_model"] = "blip_2_vision_model"
    hidden_size: Width = 1408
    intermediate_size: Inner = 6144
    num_hidden_layers: Layers = 39
    num_attention_heads: Heads = 16
    patch_size: Side = 14
    layer_norm_eps: Small = 1e-6
    qkv_bias: bool = True


class QFormer(WithHeads):
    harmless = frozenset(
        {"vocab_size", "max_position_embeddings", "position_embedding_type", "encoder_hidden_size"}
    )

    model_type: Literal["blip_2_qformer"] = "blip_2_qformer"
    cross_attention_frequency: Annotated[int, Field(ge=1, le=200)] = 2
    use_qformer_text_input: Literal[False] = False

    def shapes(self, at: str, seen: int) -> Shapes:
        """`seen`: the width of what it looks at."""
        d, inner = self.hidden_size, self.intermediate_size
        found = norm(f"{at}.layernorm", d)
        for number in range(self.num_hidden_layers):
            layer = f"{at}.encoder.layer.{number}"
            parts = {"attention": d}
            if number % self.cross_attention_frequency == 0:
                parts["crossattention"] = seen
            for part, into in parts.items():
                found |= attention(f"{layer}.{part}", "attention", d, into)
            found |= linear(f"{layer}.intermediate_query.dense", inner, d)
            found |= linear(f"{layer}.output_query.dense", d, inner)
            found |= norm(f"{layer}.output_query.LayerNorm", d)
        return found


class Opt(Text):
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
            **norm(f"{body}.final_layer_norm", d),
        }
        for number in range(self.num_hidden_layers):
            layer = f"{body}.layers.{number}"
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                found |= linear(f"{layer}.self_attn.{name}", d, d)
            found |= linear(f"{layer}.fc1", self.ffn_dim, d)
            found |= linear(f"{layer}.fc2", d, self.ffn_dim)
            found |= norm(f"{layer}.self_attn_layer_norm", d)
            found |= norm(f"{layer}.final_layer_norm", d)
        return found


class Blip2(InPlaces):
    harmless = frozenset(
        {
            "image_text_hidden_size",
            "image_token_index",
            "tie_word_embeddings",
            "use_decoder_only_language_model",
        }
    )

    model_type: Literal["blip-2"]
    vision_config: Annotated[Blip2Vision, inside(any=Blip2Vision)]
    qformer_config: Annotated[QFormer, inside(any=QFormer)]
    text_config: Annotated[Opt, inside(any=Opt)]
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
            **linear("language_projection", self.text_config.hidden_size, seen),
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

    def edges(self, searched: Generation) -> tuple[int, int]:
        return self.text_config.bos_token_id, known(searched.eos_token_id, "eos_token_id")
