"""The training of a learned metric: request and answer."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from service.contract import limits
from service.contract.api.answers import RunProblem
from service.contract.api.captions import CaptionIn
from service.contract.api.runs import DatasetPinned, RunOut, WarningOut, WorkOut
from service.contract.api.strict import Caption, Many, Strict, Whole, absent
from service.contract.api.texts import (
    DatasetReference,
    FeatureName,
    LearnedId,
    PlainName,
    Timestamp,
    TokenizerName,
)
from service.contract.metrics import families, tokenizers

Finite = Annotated[float, Field(allow_inf_nan=False)]


class CaptionerIn(Strict):
    """A captioner whose captions the metric learns to tell from people's."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [absent("evaluation"), absent("captions")],
        }
    )

    name: PlainName = Field(min_length=1, max_length=100)
    evaluation: str | None = Field(
        default=None,
        max_length=40,
        description="An evaluation on the same split, whose captions are used.",
    )
    captions: Many[CaptionIn] | None = Field(
        default=None,
        min_length=1,
        max_length=limits.CAPTIONS,
        description="The captions themselves, one for each image.",
    )
    trained_on: DatasetReference | None = Field(
        default=None,
        description="The split that the captioner was trained on: its captions of these photos are "
        "refused; null where it is not known.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.evaluation is None) == (self.captions is None):
            raise ValueError("expected either `evaluation` or `captions`, and not both")
        return self


class RatedIn(Strict):
    """A caption with people's ratings."""

    image: str = Field(max_length=limits.IMAGE, description="The name of the image.")
    candidate: Caption
    references: Many[Caption] = Field(min_length=1, max_length=limits.REFERENCES)
    ratings: Many[Finite] = Field(
        min_length=1, max_length=limits.RATINGS, description="One rating of each rater."
    )


class LearnedIn(Strict):
    """Train a metric on people's captions of a split, and on captioners' captions."""

    dataset: DatasetReference
    captioners: Many[CaptionerIn] = Field(
        min_length=3,
        max_length=limits.CAPTIONERS,
        description="At least three of them must have a caption of every image.",
    )
    stopping: Many[RatedIn] | None = Field(
        default=None,
        min_length=1,
        max_length=limits.CAPTIONS,
        description="One half of the rated images decides when the training stops, the other half "
        "tests the metric. null: parts of the split do both, by how well people and captioners "
        "are told apart.",
    )
    leave_out_rated: bool = Field(
        default=False, description="Leave rated photos out of the training; else they are refused."
    )
    features: Many[FeatureName] = Field(
        default=families.usual_features(), min_length=1, max_length=limits.FEATURES
    )
    learner: Literal["network", "logistic", "boosting"] = Field(
        default="network",
        description="The paper's network, a network without hidden layer, or boosted trees.",
    )
    learning_rate: Finite | None = Field(
        default=None, ge=0, description="null: 0.001 (0.25 in the paper); for boosting 0.1."
    )
    beta: Finite | None = Field(
        default=None,
        ge=0,
        description="The weight of the L2 penalty; null: 0.01 for networks, 1 for the leaves of "
        "trees.",
    )
    epochs: Whole = Field(
        default=500,
        ge=1,
        le=10_000,
        description="The largest number of epochs; for boosting, of trees.",
    )
    seed: Whole = Field(default=0, ge=0, lt=2**32, description="The seed of all random numbers.")
    tokenizer: TokenizerName = Field(
        default=tokenizers.USUAL,
        description="Evaluations with this metric must use the same tokenizer.",
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
    """The data that a model was trained on."""

    images: int
    captions: int
    captioners: dict[str, int | str] = Field(
        description="How many images each captioner was trained on, where that is known."
    )
    frequencies: dict[str, Any] = Field(
        description="The images that the document frequencies are counted in."
    )
    inputs: dict[str, str] = Field(description="Digests of the files that it was trained on.")


class ModelOut(BaseModel):
    """The description of a trained metric (its model card)."""

    features: dict[str, str] = Field(description="The signature of each feature, by name.")
    tokenizer: str
    learner: str
    recipe: dict[str, Any]
    training: TrainingOut
    stopped_by: str = Field(description="`people`, or `held-out images`.")
    epochs: int
    best_epoch: int
    kendall_c: dict[str, tuple[float | None, float | None]] = Field(
        description="Kendall's tau c with people's ratings, or with whether a person wrote the "
        "caption, on the data that stopped the training and on the test data: of the metric, of "
        "each feature alone, and of the metric without each feature."
    )


class LearnedOut(RunOut):
    """The training of a metric, which evaluations can then use."""

    id: LearnedId
    dataset: DatasetPinned
    works: list[WorkOut]
    metric: str | None = Field(
        description="The metric's name in requests; null until it is trained.",
        examples=["nneval@0123456789ab"],
    )
    model: ModelOut | None
    warnings: list[WarningOut]
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None
