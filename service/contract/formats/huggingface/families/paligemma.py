"""PaliGemma: SigLIP's picture, START of the text and a prompt stand before the caption, in the
places of Gemma's words. They read all of themselves; a caption's words read what precedes them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from service.contract.formats.huggingface.families import towers
from service.contract.formats.huggingface.families.in_places import InPlaces
from service.contract.formats.huggingface.families.rotary import Gemma
from service.contract.formats.huggingface.families.towers import Siglip
from service.contract.formats.huggingface.parts import (
    Shapes,
    Width,
    inside,
    linear,
)


class PaliGemma(InPlaces):
    harmless = frozenset({"ignore_index", "hidden_size", "vocab_size"})
    example_prompt: ClassVar[str | None] = "caption en"

    model_type: Literal["paligemma"]
    vision_config: Annotated[Siglip, inside(any=Siglip)]
    text_config: Annotated[Gemma, inside(any=Gemma)]
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

    @property
    def architecture(self) -> str:
        return "paligemma"

    def shapes(self) -> Shapes:
        into = linear(
            "multi_modal_projector.linear", self.projection_dim, self.vision_config.hidden_size
        )
        words = self.text_config.shapes("language_model.model")
        return self.vision_config.shapes("vision_tower") | into | words

    def places(self) -> Mapping[str, int]:
        return {"vision_tower.": self.picture, "language_model.model.layers.": self.picture}

    def renamed(self, tensor: str) -> str:
        return towers.renamed(tensor)

    def special(self, config: Mapping[str, Any]) -> dict[str, Any]:
        usual = {"bos_token_id": 2, "eos_token_id": 1}
        return usual | super().special(config["text_config"]) | super().special(config)
