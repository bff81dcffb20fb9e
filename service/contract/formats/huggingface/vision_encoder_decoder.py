"""An encoder of pictures and a decoder of words with cross-attention: ViT-GPT2 and kin."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from service.contract.formats.huggingface.family import (
    ATTENTION,
    Activation,
    BertLikeSchema,
    Heads,
    Inner,
    Layers,
    PatchEncoderSchema,
    Positions,
    Shapes,
    Small,
    TransformersFamily,
    Width,
    Words,
    check_heads,
    list_block_shapes,
    list_linear_shapes,
    list_norm_shapes,
    read_model_type,
    require_token,
    validate_nested,
)
from service.contract.formats.huggingface.generation import GenerationSettings
from service.contract.formats.huggingface.picture_encoders import BeitSchema, SwinSchema
from service.contract.formats.huggingface.schemas import ConfigPart


class VitSchema(PatchEncoderSchema):
    harmless = frozenset({"encoder_stride", "pooler_output_size", "pooler_act"})

    model_type: Literal["vit", "deit"]
    qkv_bias: bool = True
    add_cross_attention: Literal[False] = False
    tie_word_embeddings: bool = True

    def shapes(self, at: str) -> Shapes:
        d, patch, distilled = self.hidden_size, self.patch_size, self.model_type == "deit"
        found: Shapes = {
            f"{at}.embeddings.cls_token": (1, 1, d),
            f"{at}.embeddings.position_embeddings": (1, self.patches + 1 + distilled, d),
            f"{at}.embeddings.patch_embeddings.projection.weight": (d, 3, patch, patch),
            f"{at}.embeddings.patch_embeddings.projection.bias": (d,),
            **list_norm_shapes(f"{at}.layernorm", d),
        }
        if distilled:
            found[f"{at}.embeddings.distillation_token"] = (1, 1, d)
        biased = ATTENTION if self.qkv_bias else ()
        for number in range(self.num_hidden_layers):
            layer = f"{at}.encoder.layer.{number}"
            found |= list_block_shapes(layer, "attention", d, self.intermediate_size, biased)
        return found

    def places(self, at: str) -> Mapping[str, int]:
        return {f"{at}.": self.patches + 1}


class Gpt2Schema(ConfigPart):
    harmless = frozenset({"n_ctx", "predict_special_tokens", "reorder_and_upcast_attn"})

    model_type: Literal["gpt2"]
    vocab_size: Words = 50257
    n_positions: Positions = 1024
    n_embd: Width = 768
    n_layer: Layers = 12
    n_head: Heads = 12
    n_inner: Inner | None = None
    activation_function: Activation = "gelu_new"
    layer_norm_epsilon: Small = 1e-5
    scale_attn_weights: Literal[True] = True
    scale_attn_by_inverse_layer_idx: Literal[False] = False
    add_cross_attention: Literal[True]
    tie_word_embeddings: bool = True

    @model_validator(mode="after")
    def _divided(self) -> Self:
        check_heads("n_embd", self.n_embd, self.n_head)
        return self

    @property
    def width(self) -> int:
        return self.n_embd

    @property
    def positions(self) -> int:
        return self.n_positions

    def shapes(self, at: str) -> Shapes:
        d, inner = self.n_embd, self.n_inner or 4 * self.n_embd
        body = f"{at}.transformer"
        found: Shapes = {
            f"{body}.wte.weight": (self.vocab_size, d),
            f"{body}.wpe.weight": (self.n_positions, d),
            **list_norm_shapes(f"{body}.ln_f", d),
        }
        if not self.tie_word_embeddings:
            found[f"{at}.lm_head.weight"] = (self.vocab_size, d)
        for number in range(self.n_layer):
            block = f"{body}.h.{number}"
            sizes = {
                "attn.c_attn": (d, 3 * d),
                "attn.c_proj": (d, d),
                "crossattention.c_attn": (d, 2 * d),
                "crossattention.q_attn": (d, d),
                "crossattention.c_proj": (d, d),
                "mlp.c_fc": (d, inner),
                "mlp.c_proj": (inner, d),
            }
            for name, (into, out) in sizes.items():
                found |= {f"{block}.{name}.weight": (into, out), f"{block}.{name}.bias": (out,)}
            for name in ("ln_1", "ln_2", "ln_cross_attn"):
                found |= list_norm_shapes(f"{block}.{name}", d)
        return found


class BertSchema(BertLikeSchema):
    model_type: Literal["bert"]
    vocab_size: Words = 30522
    type_vocab_size: Annotated[int, Field(ge=1, le=1000)] = 2
    add_cross_attention: Literal[True]
    tie_word_embeddings: bool = True

    def shapes(self, at: str) -> Shapes:
        types = (self.type_vocab_size, self.hidden_size)
        return (
            self.layer_shapes(f"{at}.bert", self.hidden_size)
            | {f"{at}.bert.embeddings.token_type_embeddings.weight": types}
            | self.head_shapes(f"{at}.cls.predictions", tied=self.tie_word_embeddings)
        )


class VisionEncoderDecoderSchema(TransformersFamily):
    model_type: Literal["vision-encoder-decoder"]
    encoder: Annotated[
        Annotated[VitSchema, Tag("vit")]
        | Annotated[VitSchema, Tag("deit")]
        | Annotated[SwinSchema, Tag("swin")]
        | Annotated[BeitSchema, Tag("beit")],
        Discriminator(read_model_type),
        validate_nested(vit=VitSchema, deit=VitSchema, swin=SwinSchema, beit=BeitSchema),
    ]
    decoder: Annotated[
        Annotated[Gpt2Schema, Tag("gpt2")] | Annotated[BertSchema, Tag("bert")],
        Discriminator(read_model_type),
        validate_nested(gpt2=Gpt2Schema, bert=BertSchema),
    ]
    vocab_size: Words | None = None  # recipes of fine-tuning copy the decoder's
    tie_word_embeddings: bool = False

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.vocab_size not in (None, self.vocabulary):
            raise ValueError(
                f"expected a vocab_size of {self.vocabulary}, as decoder/vocab_size says, found "
                f"{self.vocab_size}: remove vocab_size, which the decoder does not read"
            )
        return self

    @property
    def vocabulary(self) -> int:
        return self.decoder.vocab_size

    @property
    def positions(self) -> int:
        return self.decoder.positions

    @property
    def image_size(self) -> int:
        return self.encoder.image_size

    @property
    def architecture(self) -> str:
        return f"{self.encoder.model_type}-{self.decoder.model_type}"

    def shapes(self) -> Shapes:
        d, seen = self.decoder.width, self.encoder.hidden_size
        between = {} if d == seen else list_linear_shapes("enc_to_dec_proj", d, seen)
        return self.encoder.shapes("encoder") | self.decoder.shapes("decoder") | between

    def places(self) -> Mapping[str, int]:
        return self.encoder.places("encoder")

    def special(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return super().special(config.get("decoder", {})) | super().special(config)

    def edges(self, searched: GenerationSettings) -> tuple[int, int]:
        first = searched.decoder_start_token_id
        start = searched.bos_token_id if first is None else first
        end = require_token(searched.eos_token_id, "eos_token_id")
        return require_token(start, "decoder_start_token_id"), end
