"""GIT, for captions of single pictures."""

from collections.abc import Mapping
from typing import Annotated, Literal

from service.contract.formats.huggingface.family import (
    BertLikeSchema,
    Heads,
    Inner,
    Layers,
    Positions,
    Shapes,
    Side,
    TransformersFamily,
    Width,
    Words,
    list_linear_shapes,
    list_norm_shapes,
    validate_nested,
)
from service.contract.formats.huggingface.picture_encoders import ClipSchema


class GitVisionSchema(ClipSchema):
    model_type: Literal["git_vision_model"] = "git_vision_model"  # type: ignore[assignment]
    hidden_size: Width = 768
    intermediate_size: Inner = 3072
    num_hidden_layers: Layers = 12
    num_attention_heads: Heads = 12
    image_size: Side = 224
    patch_size: Side = 16


class GitSchema(BertLikeSchema, TransformersFamily):
    harmless = frozenset({"add_cross_attention"})

    model_type: Literal["git"]
    vision_config: Annotated[GitVisionSchema, validate_nested(any=GitVisionSchema)]
    vocab_size: Words = 30522
    num_hidden_layers: Layers = 6
    max_position_embeddings: Positions = 1024
    num_image_with_embedding: None = None  # of videos
    tie_word_embeddings: bool = False

    @property
    def vocabulary(self) -> int:
        return self.vocab_size

    @property
    def image_size(self) -> int:
        return self.vision_config.image_size

    def shapes(self) -> Shapes:
        seen, projection = self.vision_config.hidden_size, "git.visual_projection.visual_projection"
        found: Shapes = {
            **self.vision_config.shapes("git.image_encoder.vision_model"),
            **list_linear_shapes(f"{projection}.0", self.hidden_size, seen),
            **list_norm_shapes(f"{projection}.1", self.hidden_size),
            "output.bias": (self.vocab_size,),
        }
        if not self.tie_word_embeddings:
            found["output.weight"] = (self.vocab_size, self.hidden_size)
        return found | self.layer_shapes("git", None)

    def places(self) -> Mapping[str, int]:
        many = self.vision_config.places
        return {"git.image_encoder.": many, "git.encoder.": many}
