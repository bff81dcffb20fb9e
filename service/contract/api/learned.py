"""The training of a metric, as it is asked for and answered."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from service.contract.api.problems import RunProblem
from service.contract.api.requests import CaptionIn, Strict, Whole
from service.contract.api.runs import DatasetPinned, RunOut, WarningOut, WorkOut
from service.contract.api.texts import (
    DatasetReference,
    FeatureName,
    LearnedId,
    Timestamp,
    TokenizerName,
)
from service.contract.metrics import families, tokenizers

Finite = Annotated[float, Field(allow_inf_nan=False)]


class CaptionerIn(Strict):
    """Someone whose captions are told from people's."""

    name: str = Field(min_length=1, max_length=100)
    evaluation: str | None = Field(
        default=None, max_length=40, description="One on the same split: its captions."
    )
    captions: list[CaptionIn] | None = Field(
        default=None, min_length=1, max_length=1_000_000, description="Or these."
    )
    trained_on: DatasetReference | None = Field(
        default=None,
        description="The images that it was trained on, whose photos it may not be trained with "
        "here; null where nobody says.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.evaluation is None) == (self.captions is None):
            raise ValueError("expected either `evaluation` or `captions`, and not both")
        return self


class RatedIn(Strict):
    """A caption that people rated."""

    image: str = Field(max_length=500, description="Its name, by which its photo is known.")
    candidate: str = Field(max_length=10_000)
    references: list[str] = Field(min_length=1, max_length=100)
    ratings: list[Finite] = Field(min_length=1, max_length=1000, description="Of each rater.")


class LearnedIn(Strict):
    """What a metric is to be trained on: people's captions of a split, and captioners'."""

    dataset: DatasetReference
    captioners: list[CaptionerIn] = Field(
        min_length=3, max_length=100, description="Of every image three must have said something."
    )
    stopping: list[RatedIn] | None = Field(
        default=None,
        min_length=1,
        max_length=1_000_000,
        description="One half of the rated images ends the training, the other tests. Without, "
        "parts of the split do, by how well people and captioners are told apart.",
    )
    leave_out_rated: bool = Field(
        default=False, description="Photos that are rated are left out, rather than refused."
    )
    features: list[FeatureName] = Field(default=families.usual_features(), min_length=1)
    learner: Literal["network", "logistic", "boosting"] = Field(
        default="network",
        description="The paper's network, one with no hidden layer, or boosted trees.",
    )
    learning_rate: Finite | None = Field(
        default=None, ge=0, description="null: 0.001 (the paper's is 0.25), of boosting 0.1."
    )
    beta: Finite | None = Field(
        default=None, ge=0, description="Of squared weights: 0.01; of squared leaves: 1."
    )
    epochs: Whole = Field(
        default=500, ge=1, le=10_000, description="At most so many, or so many trees."
    )
    seed: Whole = Field(default=0, ge=0, lt=2**32, description="Of every draw.")
    tokenizer: TokenizerName = Field(
        default=tokenizers.USUAL, description="As evaluations that ask for the metric must have it."
    )
    deadline: Whole = Field(default=3600, ge=1, le=7 * 24 * 3600)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        _check_once("captioners", [each.name for each in self.captioners])
        _check_once("features", self.features)
        return self


def _check_once(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected different {what}, found {twice!r:.100} twice")


class TrainingOut(BaseModel):
    """What a model was trained on."""

    images: int
    captions: int
    captioners: dict[str, int | str] = Field(
        description="How many images each was trained on, if anybody says."
    )
    frequencies: dict[str, Any] = Field(description="The images that document frequencies count.")
    inputs: dict[str, str] = Field(description="Digests of what it was made from.")


class ModelOut(BaseModel):
    """A model's card."""

    features: dict[str, str] = Field(description="By name, how each is computed.")
    tokenizer: str
    learner: str
    recipe: dict[str, Any]
    training: TrainingOut
    stopped_by: str = Field(description="`people`, or `held-out images`.")
    epochs: int
    best_epoch: int
    kendall_c: dict[str, tuple[float | None, float | None]] = Field(
        description="Kendall's tau c with what people say, or with who wrote it, where the "
        "training stopped and where it was tested: of the metric, of each feature alone, and of "
        "the metric without each."
    )


class LearnedOut(RunOut):
    """The training of a metric: a work, whose result evaluations can ask for."""

    id: LearnedId
    dataset: DatasetPinned
    works: list[WorkOut]
    metric: str | None = Field(
        description="What evaluations ask for, once it is there.", examples=["nneval@0123456789ab"]
    )
    model: ModelOut | None
    warnings: list[WarningOut]
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None
