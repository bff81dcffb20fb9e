"""Encoders of pictures by patches or windows: CLIP, SigLIP, BLIP, Swin, BEiT."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from service.contract.formats.huggingface.family import (
    ATTENTION,
    Activation,
    Heads,
    Inner,
    Layers,
    PatchEncoderSchema,
    Shapes,
    Side,
    Small,
    Width,
    list_block_shapes,
    list_linear_shapes,
    list_norm_shapes,
)
from service.contract.formats.huggingface.schemas import ConfigPart


class ClipSchema(PatchEncoderSchema):
    harmless = frozenset(
        {"projection_dim", "vocab_size", "tie_word_embeddings", "add_cross_attention"}
    )

    model_type: Literal["clip_vision_model"] = "clip_vision_model"
    hidden_size: Width = 1024
    intermediate_size: Inner = 4096
    num_hidden_layers: Layers = 24
    num_attention_heads: Heads = 16
    image_size: Side = 336
    patch_size: Side = 14
    hidden_act: Activation = "quick_gelu"
    layer_norm_eps: Small = 1e-5

    @property
    def places(self) -> int:
        return self.patches + 1

    def shapes(self, at: str) -> Shapes:
        d, patch = self.hidden_size, self.patch_size
        found: Shapes = {
            f"{at}.embeddings.class_embedding": (d,),
            f"{at}.embeddings.position_embedding.weight": (self.places, d),
            f"{at}.embeddings.patch_embedding.weight": (d, 3, patch, patch),
            **list_norm_shapes(f"{at}.pre_layrnorm", d),
            **list_norm_shapes(f"{at}.post_layernorm", d),
        }
        for number in range(self.num_hidden_layers):
            found |= _layer(f"{at}.encoder.layers.{number}", d, self.intermediate_size)
        return found


class SiglipSchema(PatchEncoderSchema):
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

    @property
    def places(self) -> int:
        return self.patches

    def shapes(self, at: str) -> Shapes:
        d, patch = self.hidden_size, self.patch_size
        found: Shapes = {
            f"{at}.embeddings.patch_embedding.weight": (d, 3, patch, patch),
            f"{at}.embeddings.patch_embedding.bias": (d,),
            f"{at}.embeddings.position_embedding.weight": (self.patches, d),
            **list_norm_shapes(f"{at}.post_layernorm", d),
        }
        for number in range(self.num_hidden_layers):
            found |= _layer(f"{at}.encoder.layers.{number}", d, self.intermediate_size)
        return found


class BlipTowerSchema(PatchEncoderSchema):
    def shapes(self, at: str, *, bias: bool = True) -> Shapes:
        """Shapes of BLIP's picture encoder. `bias`: of queries, keys and values."""
        d, patch = self.hidden_size, self.patch_size
        found: Shapes = {
            f"{at}.embeddings.class_embedding": (1, 1, d),
            f"{at}.embeddings.position_embedding": (1, self.patches + 1, d),
            f"{at}.embeddings.patch_embedding.weight": (d, 3, patch, patch),
            f"{at}.embeddings.patch_embedding.bias": (d,),
            **list_norm_shapes(f"{at}.post_layernorm", d),
        }
        for number in range(self.num_hidden_layers):
            layer = f"{at}.encoder.layers.{number}"
            found |= list_linear_shapes(f"{layer}.self_attn.qkv", 3 * d, d, bias=bias)
            found |= list_linear_shapes(f"{layer}.self_attn.projection", d, d)
            found |= list_linear_shapes(f"{layer}.mlp.fc1", self.intermediate_size, d)
            found |= list_linear_shapes(f"{layer}.mlp.fc2", d, self.intermediate_size)
            found |= list_norm_shapes(f"{layer}.layer_norm1", d)
            found |= list_norm_shapes(f"{layer}.layer_norm2", d)
        return found


def _layer(at: str, width: int, inner: int) -> Shapes:
    found = list_linear_shapes(f"{at}.mlp.fc1", inner, width)
    found |= list_linear_shapes(f"{at}.mlp.fc2", width, inner)
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        found |= list_linear_shapes(f"{at}.self_attn.{name}", width, width)
    for name in ("layer_norm1", "layer_norm2"):
        found |= list_norm_shapes(f"{at}.{name}", width)
    return found


_Stages = Annotated[list[Annotated[int, Field(ge=1, le=200)]], Field(min_length=1, max_length=8)]
_OF_BACKBONES = frozenset({"out_features", "out_indices", "stage_names", "drop_path_rate"})


class SwinSchema(ConfigPart):
    """Stages of windows; each but the last merges four neighbours into one of twice the width."""

    harmless = _OF_BACKBONES | {
        *("encoder_stride", "path_norm"),
        *("num_layers", "num_hidden_layers", "num_attention_heads"),  # as depths and num_heads say
    }

    model_type: Literal["swin"]
    image_size: Side = 224
    patch_size: Side = 4
    num_channels: Literal[3] = 3
    embed_dim: Width = 96
    depths: _Stages = Field(default=[2, 2, 6, 2])
    num_heads: Annotated[list[Heads], Field(min_length=1, max_length=8)] = Field(
        default=[3, 6, 12, 24]
    )
    window_size: Annotated[int, Field(ge=1, le=512)] = 7
    mlp_ratio: Annotated[float, Field(gt=0, le=16, allow_inf_nan=False)] = 4.0
    qkv_bias: bool = True
    hidden_act: Activation = "gelu"
    use_absolute_embeddings: bool = False
    layer_norm_eps: Small = 1e-5
    hidden_size: Annotated[int, Field(ge=1, le=65_536)]
    add_cross_attention: Literal[False] = False
    tie_word_embeddings: bool = True

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, value: Any) -> Any:
        """The width after the last stage, which older versions left out."""
        if not isinstance(value, dict) or "hidden_size" in value:
            return value
        first, depths = value.get("embed_dim", 96), value.get("depths", [2, 2, 6, 2])
        if not isinstance(first, int) or not isinstance(depths, list) or len(depths) > 8:
            return value
        return {**value, "hidden_size": first * 2 ** max(0, len(depths) - 1)}

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if len(self.num_heads) != len(self.depths):
            raise ValueError(f"expected num_heads of {len(self.depths)} stages, as depths has")
        if self.hidden_size != self.widths[-1]:
            raise ValueError(
                f"expected a hidden_size of {self.widths[-1]}, which embed_dim is after the last "
                f"stage, found {self.hidden_size}"
            )
        for width, heads in zip(self.widths, self.num_heads, strict=True):
            if width % heads:
                raise ValueError(f"expected a width that {heads} heads divide, found {width}")
        if self.image_size % self.patch_size:
            raise ValueError(
                f"expected an image_size of whole patches of {self.patch_size}, found "
                f"{self.image_size}"
            )
        if self._sides[-1] < self.window_size:
            raise ValueError(
                f"expected a window_size of at most {self._sides[-1]}, the places of the last "
                f"stage, found {self.window_size}"
            )
        return self

    @property
    def widths(self) -> list[int]:
        return [self.embed_dim * 2**stage for stage in range(len(self.depths))]

    @property
    def _sides(self) -> list[int]:
        """Places in a row of a picture, stage by stage."""
        found = [self.image_size // self.patch_size]
        for _ in self.depths[1:]:
            found.append((found[-1] + 1) // 2)
        return found

    def shapes(self, at: str) -> Shapes:
        first, patch = self.embed_dim, self.patch_size
        found: Shapes = {
            f"{at}.embeddings.patch_embeddings.projection.weight": (first, 3, patch, patch),
            f"{at}.embeddings.patch_embeddings.projection.bias": (first,),
            **list_norm_shapes(f"{at}.embeddings.norm", first),
            **list_norm_shapes(f"{at}.layernorm", self.hidden_size),
        }
        if self.use_absolute_embeddings:
            found[f"{at}.embeddings.position_embeddings"] = (1, self._sides[0] ** 2, first)
        for stage, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            part = f"{at}.encoder.layers.{stage}"
            for number in range(depth):
                found |= self._block(f"{part}.blocks.{number}", width, self.num_heads[stage])
            if stage < len(self.depths) - 1:
                found |= list_norm_shapes(f"{part}.downsample.norm", 4 * width)
                found |= list_linear_shapes(
                    f"{part}.downsample.reduction", 2 * width, 4 * width, bias=False
                )
        return found

    def places(self, at: str) -> Mapping[str, int]:
        return {f"{at}.encoder.layers.{stage}.": side**2 for stage, side in enumerate(self._sides)}

    def _block(self, at: str, width: int, heads: int) -> Shapes:
        inner, table = int(self.mlp_ratio * width), (2 * self.window_size - 1) ** 2
        biased = ATTENTION if self.qkv_bias else ()
        return {
            f"{at}.attention.self.relative_position_bias_table": (table, heads),
            **list_block_shapes(at, "self", width, inner, biased),
        }


class BeitSchema(PatchEncoderSchema):
    harmless = _OF_BACKBONES | {
        *("vocab_size", "add_fpn", "reshape_hidden_states", "pool_scales", "use_auxiliary_head"),
        *("auxiliary_channels", "auxiliary_concat_input", "auxiliary_loss_weight"),
        *("auxiliary_num_convs", "semantic_loss_ignore_index"),
    }

    model_type: Literal["beit"]
    use_mask_token: bool = False
    use_absolute_position_embeddings: bool = False
    use_relative_position_bias: bool = False
    use_shared_relative_position_bias: bool = False
    use_mean_pooling: bool = True
    layer_scale_init_value: Small = 0.1
    add_cross_attention: Literal[False] = False
    tie_word_embeddings: bool = True

    def shapes(self, at: str) -> Shapes:
        d, patch = self.hidden_size, self.patch_size
        found: Shapes = {
            f"{at}.embeddings.cls_token": (1, 1, d),
            f"{at}.embeddings.patch_embeddings.projection.weight": (d, 3, patch, patch),
            f"{at}.embeddings.patch_embeddings.projection.bias": (d,),
        }
        if self.use_mask_token:
            found[f"{at}.embeddings.mask_token"] = (1, 1, d)
        if self.use_absolute_position_embeddings:
            found[f"{at}.embeddings.position_embeddings"] = (1, self.patches + 1, d)
        if self.use_shared_relative_position_bias:
            found |= self._table(f"{at}.encoder")
        if not self.use_mean_pooling:
            found |= list_norm_shapes(f"{at}.layernorm", d)
        for number in range(self.num_hidden_layers):
            found |= self._layer(f"{at}.encoder.layer.{number}")
        return found

    def places(self, at: str) -> Mapping[str, int]:
        return {f"{at}.": self.patches + 1}

    def _layer(self, at: str) -> Shapes:
        d = self.hidden_size
        found = list_block_shapes(at, "attention", d, self.intermediate_size, ("query", "value"))
        if self.layer_scale_init_value:
            found |= {f"{at}.lambda_1": (d,), f"{at}.lambda_2": (d,)}
        if self.use_relative_position_bias:
            found |= self._table(f"{at}.attention.attention")
        return found

    def _table(self, at: str) -> Shapes:
        distances = (2 * (self.image_size // self.patch_size) - 1) ** 2 + 3
        name = f"{at}.relative_position_bias.relative_position_bias_table"
        return {name: (distances, self.num_attention_heads)}
