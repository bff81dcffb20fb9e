"""BLIP, for captions."""

from collections.abc import Mapping
from typing import Annotated, Literal

from service.contract.formats.huggingface.families.towers import BlipTower
from service.contract.formats.huggingface.generation import Generation
from service.contract.formats.huggingface.parts import (
    BertLike,
    Family,
    Heads,
    Shapes,
    Side,
    Small,
    Width,
    Words,
    inside,
)


class BlipText(BertLike):
    harmless = frozenset({"projection_dim", "tie_word_embeddings"})

    model_type: Literal["blip_text_model"] = "blip_text_model"
    vocab_size: Words = 30524
    num_attention_heads: Heads = 8
    bos_token_id: int = 30522
    sep_token_id: int = 102
    encoder_hidden_size: Width = 768
    add_cross_attention: bool = False  # it has it in any case


class BlipVision(BlipTower):
    harmless = frozenset({"projection_dim", "tie_word_embeddings", "add_cross_attention"})

    model_type: Literal["blip_vision_model"] = "blip_vision_model"
    image_size: Side = 384
    layer_norm_eps: Small = 1e-5


class Blip(Family):
    harmless = frozenset({"projection_dim", "logit_scale_init_value", "image_text_hidden_size"})

    model_type: Literal["blip"]
    text_config: Annotated[BlipText, inside(any=BlipText)]
    vision_config: Annotated[BlipVision, inside(any=BlipVision)]
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

    @property
    def architecture(self) -> str:
        return "blip"

    def shapes(self) -> Shapes:
        text = self.text_config
        found = self.vision_config.shapes("vision_model")
        found |= text.layer_shapes("text_decoder.bert", self.vision_config.hidden_size)
        return found | text.head_shapes("text_decoder.cls.predictions", tied=True)

    def places(self) -> Mapping[str, int]:
        return {"vision_model.": self.vision_config.patches + 1}

    def edges(self, searched: Generation) -> tuple[int, int]:  # noqa: ARG002  as the library does
        return self.text_config.bos_token_id, self.text_config.sep_token_id
