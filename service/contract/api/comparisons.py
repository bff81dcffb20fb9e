"""Two evaluations held against each other."""

from pydantic import BaseModel, Field

from service.contract.api.problems import RunProblem
from service.contract.api.runs import DatasetPinned, RunOut, WorkOut
from service.contract.api.texts import ComparisonId, EvaluationId, Timestamp


class ComparedOut(BaseModel):
    """One metric of two evaluations. What cannot be known is null: of one image, of what is not
    summed over images, of an infinite score.
    """

    a: float | None
    b: float | None
    difference: float | None = Field(description="a - b.")
    interval: tuple[float, float] | None = Field(
        description="95 %, by drawing images anew, the same for both."
    )
    p: float | None = Field(
        description="How often chance alone sets two such systems so far apart, in either "
        "direction: by exchanging, at random, what the two say of an image."
    )
    minimum_detectable: float | None = Field(
        description="The difference that this dataset and these two would show (p < .05) in 80 of "
        "100 cases."
    )


class MovedOut(BaseModel):
    """An image on which the two differ much: their captions, and what these score."""

    image: str
    a: str
    b: str
    scores: dict[str, "ImageCompared"]


class ImageCompared(BaseModel):
    a: float | None
    b: float | None
    difference: float | None


class ComparisonOut(RunOut):
    """Two evaluations held against each other, image by image; metrics as they are done."""

    id: ComparisonId
    a: EvaluationId
    b: EvaluationId
    dataset: DatasetPinned
    works: list[WorkOut]
    scores: dict[str, ComparedOut]
    images: list[MovedOut] = Field(
        description="Those that moved most by any of the metrics, beside what images usually move; "
        "at the end."
    )
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None
