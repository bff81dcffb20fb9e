"""Captions with their scores, and references word by word."""

from typing import Any

from pydantic import Field, RootModel

from prescore.models.base import Answer, Brief, PageOf, TupleOf
from prescore.models.runs import Oddity


class Caption(Brief, needs=("image", "caption")):
    """One caption, its own scores by the metrics that are computed so far, and its content words
    beside those of the references of its image: each once, in the order of the text, at most 50.
    Words are runs of letters, digits, apostrophes and hyphens, in lower case, of the first 500 of
    each text; content words are those that are no English function words (a, the, of, on, ...).
    """

    image: str
    caption: str
    scores: dict[str, float | None]
    nearest: str | None = Field(
        description="The reference that shares most words with the caption: the one with the "
        "largest F1 of the two multisets of words, of equal ones the first. null where the image "
        "has no reference."
    )
    invented: TupleOf[str] = Field(
        description="Content words of the caption that no reference of the image has."
    )
    missed: TupleOf[str] = Field(
        description="Content words of `nearest` that the caption does not have."
    )
    matched: TupleOf[str] = Field(description="Content words of the caption that `nearest` has.")

    def facts(self) -> tuple[object, ...]:
        return self.image, self.caption


class CocoCaption(Answer):
    """An entry of COCO's results format."""

    image_id: int | str = Field(
        description="The image's `id` in the bundle; its `image` where it has no `id`."
    )
    caption: str


class ImageCaption(Answer, needs=("image", "caption")):
    """A caption of a file, as a request for an evaluation takes it."""

    image: str
    caption: str


class CaptionInspection(Answer, needs=("format", "images", "of")):
    """The captions in a file that has not been submitted, and how they fit a split."""

    format: str = Field(examples=["COCO results", "JSON Lines", "CSV", "captions by image"])
    captions: TupleOf[ImageCaption] = Field(
        description="All captions of the file, as `POST /v1/evaluations` takes them."
    )
    images: int = Field(description="Images of the split that have a caption.")
    of: int = Field(description="Images of the split.")
    missing: TupleOf[str] = Field(
        json_schema_extra={"maxItems": 5},
        description="The first images of the split without a caption: a request with such captions "
        "needs `subset`.",
    )
    unknown: TupleOf[str] = Field(
        json_schema_extra={"maxItems": 5},
        description="The first names in the file that no image of the split has: a request with "
        "such captions is refused.",
    )
    unknown_count: int = Field(description="All such names.")
    warnings: TupleOf[Oddity] = Field(
        description="Those that the evaluation would have; and `repeated_image` for each image "
        "with a second caption, with which a request is refused."
    )
    metrics: TupleOf[str] = Field(
        description="Post-gen metrics that are computed unless a request names others."
    )


class CocoResults(RootModel[list[dict[str, Any]]]):
    """A file of COCO's results, as a client passes it on."""


class TopWord(Answer, needs=("word",)):
    """One of the model's most probable words."""

    word: str
    logp: float | None


class Token(Answer):
    """One token of a reference, the last one of each caption being `<end>`."""

    word: str | None = Field(
        description="null where columns were brought that do not tell their tokens."
    )
    logp: float | None = Field(
        description="The natural logarithm of the model's probability of this word; null where the "
        "probability is 0."
    )
    rank: int = Field(description="Number of words with a higher probability.")
    top: str | None = Field(
        description="The word with the highest probability; null where brought columns have none."
    )
    top_logp: float | None
    tops: TupleOf[TopWord] = Field(
        description="The most probable words, `top` first: as many as the evaluation's "
        "`tokens.top` asked for."
    )
    entropy: float | None = Field(
        description="Entropy of the model's distribution over words, in nats; null where the "
        "evaluation's `tokens.entropy` did not ask for it."
    )


class TokenizedCaption(Answer, needs=("text",)):
    text: str
    tokens: TupleOf[Token]


class Tokens(Answer, needs=("image",)):
    """The references of one image, word by word."""

    image: str
    captions: TupleOf[TokenizedCaption]


class ScoreDistribution(Answer):
    """Histogram of the captions' scores."""

    edges: TupleOf[float] = Field(
        description="Of 30 bins of the same width, from the lowest score to the highest one. A bin "
        "has its lower edge, and the last one has both. Where all scores are equal, from .5 below "
        "to .5 above them; without scores, 0 to 1."
    )
    counts: TupleOf[int] = Field(description="Scores in each bin.")
    missing: int = Field(description="Captions without this score.")


class WordCount(Answer, needs=("word", "captions")):
    word: str
    captions: int = Field(description="Number of captions.")


class CaptionWording(Answer):
    """Differences in words between all captions of an evaluation and their references."""

    of: int = Field(description="Captions of images with references.")
    without_bigram: int = Field(
        description="Those of them that share no two successive words with any reference of their "
        "image."
    )
    copied: int = Field(
        description="Those of them that have the words of a reference of their image, in its "
        "order, and no others."
    )
    invented: TupleOf[WordCount] = Field(
        description="The ten words that most captions have in `invented`."
    )
    missed: TupleOf[WordCount] = Field(
        description="The ten words that most captions have in `missed`."
    )


class CaptionPage(PageOf[Caption]):
    matching: int | None = Field(
        description="Number of captions on all pages; null without `sort`, `search`, `image`, "
        "`invented` and `missed`."
    )
    wording: CaptionWording | None = Field(
        description="On the first page, without `image`: of all captions of the evaluation, "
        "whatever is asked for. null also where captions and references have more than 20,000,000 "
        "characters."
    )
    distribution: ScoreDistribution | None = Field(
        description="On the first page, with `sort`: the scores of all captions that `search` and "
        "`image` leave, whatever the bounds. Otherwise null."
    )
