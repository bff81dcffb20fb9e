"""Captions as they are sent."""

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticKnownError

from service.contract import limits
from service.contract.api.strict import Caption, Many, Strict, whole


def _either(schema: dict[str, Any]) -> None:
    """Complete the schema: exactly one of `image` and `image_id`."""
    schema["properties"]["image_id"] = {
        "anyOf": [{"type": "string", "maxLength": limits.IMAGE}, {"type": "integer"}],
        "title": "Image Id",
        "description": "An image of the split, as COCO's results format names it.",
    }
    schema["required"] = ["caption"]
    schema["oneOf"] = [{"required": ["image"]}, {"required": ["image_id"]}]


class CaptionIn(Strict):
    """A captioner's caption of one image, named by `image` or, as in COCO's results, `image_id`."""

    model_config = ConfigDict(json_schema_extra=_either)

    image: str = Field(
        max_length=limits.IMAGE, description="An image of the split, by its name or its id."
    )
    caption: Caption
    image_id: Any = Field(default=None, exclude=True)  # as it was given; `image` is its text

    @property
    def named_by(self) -> str:
        """The field that names the image."""
        return "image" if self.image_id is None else "image_id"

    @model_validator(mode="before")
    @classmethod
    def _named_once(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "image_id" not in given:
            return given
        if "image" in given:
            raise ValueError("expected `image` or `image_id`, found both")
        name = whole(given["image_id"])
        if type(name) in (int, str):
            return {**given, "image": str(name)}
        raise ValueError(f"expected a text or a whole number as image_id, found {name!r:.40}")


def _counted(given: Any) -> Any:
    """Counts before pydantic does, which judges items as it counts: a second for many."""
    if isinstance(given, list) and len(given) > limits.CAPTIONS:
        told = {"field_type": "List", "max_length": limits.CAPTIONS, "actual_length": len(given)}
        raise PydanticKnownError("too_long", told)
    return given


CaptionsIn = Annotated[
    Many[CaptionIn], Field(min_length=1, max_length=limits.CAPTIONS), BeforeValidator(_counted)
]
