"""A comparison of two evaluations: the request and the answer."""

from pydantic import BaseModel, Field

from service.contract import limits
from service.contract.api.answers import Page, RunProblem
from service.contract.api.runs import DatasetPinned, RunOut, WorkOut
from service.contract.api.strict import Many, Strict, Whole
from service.contract.api.texts import (
    ComparisonId,
    EvaluationId,
    PostgenName,
    SummedName,
    Timestamp,
)


class ComparisonIn(Strict):
    """Compare two evaluations of the same images."""

    a: str = Field(max_length=40, description="An evaluation; the difference is a - b.")
    b: str = Field(max_length=40, description="An evaluation of the same images.")
    metrics: Many[PostgenName | SummedName] | None = Field(
        default=None,
        min_length=1,
        max_length=limits.METRICS,
        description="Post-gen metrics, and pre-gen metrics that begin with `sum`, `mean` or "
        "`geomean`. By default all that both evaluations have.",
    )
    deadline: Whole = Field(default=3600, ge=1, le=7 * 24 * 3600)


class ComparedOut(BaseModel):
    """One metric of two evaluations. An unknown number is null: with one image only, for metrics
    that are not sums over images, and for an infinite score.
    """

    a: float | None
    b: float | None
    difference: float | None = Field(description="a - b.")
    interval: tuple[float, float] | None = Field(
        description="95 %: the differences that the test behind p would not reject. There is no 0 "
        "in it exactly where p is below .05. null also with five images or fewer."
    )
    p: float | None = Field(
        description="How often chance alone makes a difference this large, in either direction: by "
        "exchanging at random the two captions of an image."
    )
    minimum_detectable: float | None = Field(
        description="The smallest difference that these images would show (p < .05) in 80 of 100 "
        "cases."
    )


class MovedOut(BaseModel):
    """An image: the captions that the two evaluations have of it, and their scores."""

    image: str
    a: str
    b: str
    scores: dict[str, "ImageCompared"]


class ImageCompared(BaseModel):
    a: float | None
    b: float | None
    difference: float | None


class ComparedImagePage(Page[MovedOut]):
    metric: str = Field(description="The one whose scores are shown.", examples=["bleu_4"])


class ComparisonOut(RunOut):
    """A comparison of two evaluations, image by image; metrics appear as they are computed."""

    id: ComparisonId
    a: EvaluationId
    b: EvaluationId
    dataset: DatasetPinned
    works: list[WorkOut]
    scores: dict[str, ComparedOut]
    images: list[MovedOut] = Field(
        description="The images that differ most by any of the metrics, relative to that metric's "
        "usual difference; empty until the end, and in lists."
    )
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None
