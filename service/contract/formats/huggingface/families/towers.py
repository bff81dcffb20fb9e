"""Encoders of pictures by patches: CLIP's, which is GIT's too, SigLIP's, BLIP's."""

from typing import Literal

from service.contract.formats.huggingface.parts import (
    Activation,
    Heads,
    Inner,
    Layers,
    Patches,
    Shapes,
    Side,
    Small,
    Width,
    linear,
    norm,
)

_TOWER, _OLD_TOWER = "vision_tower.", "vision_tower.vision_model."


class Clip(Patches):
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
            **norm(f"{at}.pre_layrnorm", d),
            **norm(f"{at}.post_layernorm", d),
        }
        for number in range(self.num_hidden_layers):
            found |= _layer(f"{at}.encoder.layers.{number}", d, self.intermediate_size)
        return found


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

    @property
    def places(self) -> int:
        return self.patches

    def shapes(self, at: str) -> Shapes:
        d, patch = self.hidden_size, self.patch_size
        found: Shapes = {
            f"{at}.embeddings.patch_embedding.weight": (d, 3, patch, patch),
            f"{at}.embeddings.patch_embedding.bias": (d,),
            f"{at}.embeddings.position_embedding.weight": (self.patches, d),
            **norm(f"{at}.post_layernorm", d),
        }
        for number in range(self.num_hidden_layers):
            found |= _layer(f"{at}.encoder.layers.{number}", d, self.intermediate_size)
        return found


class BlipTower(Patches):
    """The picture's encoder of BLIP and BLIP-2."""

    def shapes(self, at: str, *, bias: bool = True) -> Shapes:
        """`bias`: of queries, keys and values."""
        d, patch = self.hidden_size, self.patch_size
        found: Shapes = {
            f"{at}.embeddings.class_embedding": (1, 1, d),
            f"{at}.embeddings.position_embedding": (1, self.patches + 1, d),
            f"{at}.embeddings.patch_embedding.weight": (d, 3, patch, patch),
            f"{at}.embeddings.patch_embedding.bias": (d,),
            **norm(f"{at}.post_layernorm", d),
        }
        for number in range(self.num_hidden_layers):
            layer = f"{at}.encoder.layers.{number}"
            found |= linear(f"{layer}.self_attn.qkv", 3 * d, d, bias=bias)
            found |= linear(f"{layer}.self_attn.projection", d, d)
            found |= linear(f"{layer}.mlp.fc1", self.intermediate_size, d)
            found |= linear(f"{layer}.mlp.fc2", d, self.intermediate_size)
            found |= norm(f"{layer}.layer_norm1", d) | norm(f"{layer}.layer_norm2", d)
        return found


def renamed(tensor: str) -> str:
    """Older versions of the library named the network inside a tower too."""
    if tensor.startswith(_OLD_TOWER):
        return _TOWER + tensor.removeprefix(_OLD_TOWER)
    return tensor


def _layer(at: str, width: int, inner: int) -> Shapes:
    found = norm(f"{at}.layer_norm1", width) | norm(f"{at}.layer_norm2", width)
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        found |= linear(f"{at}.self_attn.{name}", width, width)
    return found | linear(f"{at}.mlp.fc1", inner, width) | linear(f"{at}.mlp.fc2", width, inner)
