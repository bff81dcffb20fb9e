"""LLaVA: the patches of CLIP or SigLIP stand in the places of Llama's or Qwen2's words, where the
prompt has its mark of a picture. Each place reads what precedes it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from service.contract.formats.huggingface.families import towers
from service.contract.formats.huggingface.families.in_places import InPlaces
from service.contract.formats.huggingface.families.rotary import Llama, Qwen2
from service.contract.formats.huggingface.families.towers import Clip, Siglip
from service.contract.formats.huggingface.generation import Generation
from service.contract.formats.huggingface.parts import (
    Activation,
    Shapes,
    inside,
    kind_of,
    known,
    linear,
)


class Llava(InPlaces):
    harmless = frozenset({"ignore_index", "vocab_size", "image_seq_length"})
    example_prompt: ClassVar[str | None] = "USER: <image>\nDescribe the picture. ASSISTANT:"

    model_type: Literal["llava"]
    vision_config: Annotated[
        Annotated[Clip, Tag("clip_vision_model")] | Annotated[Siglip, Tag("siglip_vision_model")],
        Discriminator(kind_of),
        inside(clip_vision_model=Clip, siglip_vision_model=Siglip),
    ]
    text_config: Annotated[
        Annotated[Llama, Tag("llama")] | Annotated[Qwen2, Tag("qwen2")],
        Discriminator(kind_of),
        inside(llama=Llama, qwen2=Qwen2),
    ]
    image_token_index: Annotated[int, Field(ge=0, le=1_000_000)] = 32_000
    projector_hidden_act: Activation = "gelu"
    vision_feature_select_strategy: Literal["default", "full"] = "default"
    vision_feature_layer: Annotated[int, Field(ge=-200, le=200)] = -2
    multimodal_projector_bias: bool = True
    tie_word_embeddings: bool = False

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        layers = self.vision_config.num_hidden_layers
        if not -layers - 1 <= self.vision_feature_layer <= layers:
            raise ValueError(
                f"expected a vision_feature_layer of {layers} layers, found "
                f"{self.vision_feature_layer}"
            )
        return self

    @property
    def picture(self) -> int:
        """The places of one; by `default` the first, CLIP's class, is left out."""
        return self.vision_config.places - (self.vision_feature_select_strategy == "default")

    @property
    def architecture(self) -> str:
        return f"llava-{self.text_config.model_type}"

    def shapes(self) -> Shapes:
        d, seen = self.text_config.hidden_size, self.vision_config.hidden_size
        own = self.multimodal_projector_bias
        found = self.vision_config.shapes("vision_tower")
        found |= linear("multi_modal_projector.linear_1", d, seen, bias=own)
        found |= linear("multi_modal_projector.linear_2", d, d, bias=own)
        found |= self.text_config.shapes("language_model.model")
        if not (self.tie_word_embeddings or self.text_config.tie_word_embeddings):
            found["language_model.lm_head.weight"] = (self.vocabulary, d)
        return found

    def places(self) -> Mapping[str, int]:
        return {
            "vision_tower.": self.vision_config.places,
            "language_model.model.layers.": self.picture,
        }

    def renamed(self, tensor: str) -> str:
        return towers.renamed(tensor)

    def special(self, config: Mapping[str, Any]) -> dict[str, Any]:
        usual = (
            {"bos_token_id": 1, "eos_token_id": 2} if self.text_config.model_type == "llama" else {}
        )
        return usual | super().special(config["text_config"]) | super().special(config)

    def edges(self, searched: Generation) -> tuple[int, int]:
        """START is the prompt's."""
        end = known(searched.eos_token_id, "eos_token_id")
        return end, end
