"""What captioners have in common whose picture stands before a caption, in places of words."""

from typing import ClassVar, Self

from pydantic import model_validator

from service.contract.formats.huggingface.parts import (
    MOST_PROMPT,
    Family,
    Patches,
    Positions,
    Width,
    Words,
)
from service.contract.formats.huggingface.reading import Part


class Text(Part):
    """What writes the words."""

    vocab_size: Words
    hidden_size: Width
    max_position_embeddings: Positions


class InPlaces(Family):
    in_places: ClassVar[bool] = True

    vision_config: Patches
    text_config: Text

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.positions < 2:
            prompt = f" and {MOST_PROMPT} of a prompt" if self.example_prompt else ""
            raise ValueError(
                f"expected more max_position_embeddings than the {self.picture} places of a "
                f"picture{prompt}, found {self.text_config.max_position_embeddings}"
            )
        return self

    @property
    def picture(self) -> int:
        """The places of one."""
        raise NotImplementedError

    @property
    def vocabulary(self) -> int:
        return self.text_config.vocab_size

    @property
    def positions(self) -> int:
        """What is left for a caption."""
        prompt = MOST_PROMPT if self.example_prompt else 0
        return self.text_config.max_position_embeddings - self.picture - prompt

    @property
    def image_size(self) -> int:
        return self.vision_config.image_size
