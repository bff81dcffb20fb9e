"""Captions with their own scores; references with the model's probability of each word."""

from pydantic import BaseModel, Field

from service.contract.api.answers import Page


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

    word: str
    logp: float | None = Field(
        description="The natural logarithm of the model's probability of this word; null where the "
        "probability is 0."
    )
    rank: int = Field(description="How many words have a higher probability.")
    top: str = Field(description="The word with the highest probability.")
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


class CaptionPage(Page[CaptionOut]):
    pass
