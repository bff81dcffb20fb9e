"""Captions with their own scores, references word by word."""

from pydantic import BaseModel, Field

from service.contract.api.pages import Page


class CaptionOut(BaseModel):
    """One caption, and its own scores by the metrics that are done by now."""

    image: str
    caption: str
    scores: dict[str, float | None]


class CocoCaption(BaseModel):
    """An entry of COCO's results format."""

    image_id: int | str = Field(description="The bundle's `id`; its `image` where it has none.")
    caption: str


class TokenOut(BaseModel):
    """One token of a reference, the last one of each caption being `<end>`."""

    word: str
    logp: float | None = Field(
        description="The natural logarithm of the probability that the model gives it; null where "
        "it gives none at all."
    )
    rank: int = Field(description="How many words the model holds for likelier.")
    top: str = Field(description="The model's own first choice.")
    top_logp: float | None


class ReferenceOut(BaseModel):
    text: str
    tokens: list[TokenOut]


class TokensOut(BaseModel):
    """The references of one image, word by word."""

    image: str
    captions: list[ReferenceOut]


class CaptionPage(Page[CaptionOut]):
    pass
