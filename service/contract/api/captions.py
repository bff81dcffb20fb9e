"""Captions as they are sent and as they are answered, and references word by word."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticKnownError

from service.contract import limits
from service.contract.api.answers import Page
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


class CaptionOut(BaseModel):
    """One caption, and its own scores by the metrics that are computed so far."""

    image: str
    caption: str
    scores: dict[str, float | None]


class CocoCaption(BaseModel):
    """An entry of COCO's results format."""

    image_id: int | str = Field(
        description="The image's `id` in the bundle; its `image` where it has no `id`."
    )
    caption: str


class TopWord(BaseModel):
    """One of the model's most probable words."""

    word: str
    logp: float | None


class TokenOut(BaseModel):
    """One token of a reference, the last one of each caption being `<end>`."""

    word: str | None = Field(
        description="null where columns were brought that do not tell their tokens."
    )
    logp: float | None = Field(
        description="The natural logarithm of the model's probability of this word; null where the "
        "probability is 0."
    )
    rank: int = Field(description="How many words have a higher probability.")
    top: str | None = Field(
        description="The word with the highest probability; null where brought columns have none."
    )
    top_logp: float | None
    tops: list[TopWord] = Field(
        description="The most probable words, `top` first: as many as the evaluation's "
        "`tokens.top` asked for."
    )
    entropy: float | None = Field(
        description="Entropy of the model's distribution over words, in nats; null where the "
        "evaluation's `tokens.entropy` did not ask for it."
    )


class ReferenceOut(BaseModel):
    text: str
    tokens: list[TokenOut]


class TokensOut(BaseModel):
    """The references of one image, word by word."""

    image: str
    captions: list[ReferenceOut]


class ScoreDistribution(BaseModel):
    """How often scores are how high."""

    edges: list[float] = Field(
        description="Of 30 bins of the same width, from the lowest score to the highest one. A bin "
        "has its lower edge, and the last one has both. Where all scores are equal, from .5 below "
        "to .5 above them; without scores, 0 to 1."
    )
    counts: list[int] = Field(description="Scores in each bin.")
    missing: int = Field(description="Captions without this score.")


class CaptionPage(Page[CaptionOut]):
    matching: int | None = Field(
        description="How many captions there are on all pages; null without `sort`, `search` and "
        "`image`."
    )
    distribution: ScoreDistribution | None = Field(
        description="On the first page, with `sort`: the scores of all captions that `search` and "
        "`image` leave, whatever the bounds. Otherwise null."
    )
