"""GIT, for captions of single pictures."""

from collections.abc import Mapping
from typing import Annotated, Literal

from service.contract.formats.huggingface.parts import (
    Activation,
    BertLike,
    Family,
    Layers,
    Patches,
    Positions,
    Shapes,
    Small,
    Words,
    inside,
    linear,
    norm,
)


class GitVision(Patches):
    harmless = frozenset({"projection_dim", "tie_word_embeddings", "add_cross_attention"})

    model_type: Literal["git_vision_model"] = "git_vision_model"
    hidden_act: Activation = "quick_gelu"
    layer_norm_eps: Small = 1e-5


class Git(Family, BertLike):
    harmless = frozenset({"add_cross_attention"})

    model_type: Literal["git"]
    vision_config: Annotated[GitVision, inside(any=GitVision)]
    vocab_size: Words = 30522
    num_hidden_layers: Layers = 6
    max_position_embeddings: Positions = 1024
    num_image_with_embedding: None = None  # of videos
    tie_word_embeddings: bool = False

    @property
    def vocabulary(self) -> int:
        return self.vocab_size

    @property
    def positions(self) -> int:
        return self.max_position_embeddings

    @property
    def image_size(self) -> int:
        return self.vision_config.image_size

    @property
    def architecture(self) -> str:
        return "git"

    def shapes(self) -> Shapes:
        vision, d = self.vision_config, self.vision_config.hidden_size
        at = "git.image_encoder.vision_model"
        found: Shapes = {
            f"{at}.embeddings.class_embedding": (d,),
            f"{at}.embeddings.position_embedding.weight": (vision.patches + 1, d),
            f"{at}.embeddings.patch_embedding.weight": (
                *(d, 3, vision.patch_size, vision.patch_size),
            ),
            **norm(f"{at}.pre_layrnorm", d),
            **norm(f"{at}.post_layernorm", d),
            **linear("git.visual_projection.visual_projection.0", self.hidden_size, d),
            **norm("git.visual_projection.visual_projection.1", self.hidden_size),
            "output.bias": (self.vocab_size,),
        }
        for number in range(vision.num_hidden_layers):
            layer = f"{at}.encoder.layers.{number}"
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                found |= linear(f"{layer}.self_attn.{name}", d, d)
            found |= linear(f"{layer}.mlp.fc1", vision.intermediate_size, d)
            found |= linear(f"{layer}.mlp.fc2", d, vision.intermediate_size)
            found |= norm(f"{layer}.layer_norm1", d) | norm(f"{layer}.layer_norm2", d)
        if not self.tie_word_embeddings:
            found["output.weight"] = (self.vocab_size, self.hidden_size)
        return found | self.layer_shapes("git", None)

    def places(self) -> Mapping[str, int]:
        many = self.vision_config.patches + 1
        return {"git.image_encoder.": many, "git.encoder.": many}
