"""Encoders of pictures for `vision_encoder_decoder`, besides ViT: Swin and BEiT."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from service.contract.formats.huggingface.parts import (
    Activation,
    Heads,
    Patches,
    Shapes,
    Side,
    Small,
    Width,
    linear,
    norm,
)
from service.contract.formats.huggingface.reading import Part

_Stages = Annotated[list[Annotated[int, Field(ge=1, le=200)]], Field(min_length=1, max_length=8)]
_OF_BACKBONES = frozenset({"out_features", "out_indices", "stage_names", "drop_path_rate"})


class Swin(Part):
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
        first = self.embed_dim
        found: Shapes = {
            f"{at}.embeddings.patch_embeddings.projection.weight": (
                *(first, 3, self.patch_size, self.patch_size),
            ),
            f"{at}.embeddings.patch_embeddings.projection.bias": (first,),
            **norm(f"{at}.embeddings.norm", first),
            **norm(f"{at}.layernorm", self.hidden_size),
        }
        if self.use_absolute_embeddings:
            found[f"{at}.embeddings.position_embeddings"] = (1, self._sides[0] ** 2, first)
        for stage, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            part = f"{at}.encoder.layers.{stage}"
            for number in range(depth):
                found |= self._block(f"{part}.blocks.{number}", width, self.num_heads[stage])
            if stage < len(self.depths) - 1:
                found |= norm(f"{part}.downsample.norm", 4 * width)
                found |= linear(f"{part}.downsample.reduction", 2 * width, 4 * width, bias=False)
        return found

    def places(self, at: str) -> Mapping[str, int]:
        return {f"{at}.encoder.layers.{stage}.": side**2 for stage, side in enumerate(self._sides)}

    def _block(self, at: str, width: int, heads: int) -> Shapes:
        inner, table = int(self.mlp_ratio * width), (2 * self.window_size - 1) ** 2
        found: Shapes = {
            f"{at}.attention.self.relative_position_bias_table": (table, heads),
            **linear(f"{at}.attention.output.dense", width, width),
            **linear(f"{at}.intermediate.dense", inner, width),
            **linear(f"{at}.output.dense", width, inner),
            **norm(f"{at}.layernorm_before", width),
            **norm(f"{at}.layernorm_after", width),
        }
        for name in ("query", "key", "value"):
            found |= linear(f"{at}.attention.self.{name}", width, width, bias=self.qkv_bias)
        return found


class Beit(Patches):
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
            found |= norm(f"{at}.layernorm", d)
        for number in range(self.num_hidden_layers):
            found |= self._layer(f"{at}.encoder.layer.{number}")
        return found

    def places(self, at: str) -> Mapping[str, int]:
        return {f"{at}.": self.patches + 1}

    def _layer(self, at: str) -> Shapes:
        d, inner = self.hidden_size, self.intermediate_size
        found = linear(f"{at}.attention.attention.key", d, d, bias=False)
        for name in ("attention.attention.query", "attention.attention.value"):
            found |= linear(f"{at}.{name}", d, d)
        found |= linear(f"{at}.attention.output.dense", d, d)
        found |= linear(f"{at}.intermediate.dense", inner, d)
        found |= linear(f"{at}.output.dense", d, inner)
        found |= norm(f"{at}.layernorm_before", d) | norm(f"{at}.layernorm_after", d)
        if self.layer_scale_init_value:
            found |= {f"{at}.lambda_1": (d,), f"{at}.lambda_2": (d,)}
        if self.use_relative_position_bias:
            found |= self._table(f"{at}.attention.attention")
        return found

    def _table(self, at: str) -> Shapes:
        distances = (2 * (self.image_size // self.patch_size) - 1) ** 2 + 3
        name = f"{at}.relative_position_bias.relative_position_bias_table"
        return {name: (distances, self.num_attention_heads)}
