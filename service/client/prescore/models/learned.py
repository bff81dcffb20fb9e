"""Trainings of learned metrics, and descriptions of the trained metrics."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from prescore.models.base import Answer, RunProblem, TupleOf
from prescore.models.identifiers import SAFE_ID, LearnedId, Timestamp
from prescore.models.runs import DatasetPinned, Oddity, Run, RunTask


class ModelTraining(Answer):
    """The data that a model was trained on."""

    images: int
    captions: int
    captioners: dict[str, int | str] = Field(
        description="Number of images that each captioner was trained on, where it is known."
    )
    frequencies: dict[str, Any] = Field(
        description="The images that the document frequencies are counted in."
    )
    inputs: dict[str, str] = Field(description="Digests of the files that it was trained on.")


class ModelCard(Answer, needs=("features",)):
    """The description of a trained metric (its model card)."""

    features: dict[str, str] = Field(description="The signature of each feature, by name.")
    tokenizer: str
    recipe: dict[str, Any]
    training: ModelTraining
    stopped_by: str = Field(description="`people`, or `held-out images`.")
    epochs: int
    best_epoch: int
    kendall_c: dict[str, tuple[float | None, float | None]] = Field(
        description="Kendall's tau c with people's ratings, or with whether a person wrote the "
        "caption, on the data that stopped the training and on the test data: of the metric, of "
        "each feature alone, and of the metric without each feature."
    )


class MetricAgreement(Answer):
    """A metric's agreement with people on the test data; null: no such judgements."""

    kendall_c: float | None = Field(description="Kendall's tau c with ratings.")
    kendall_c_interval: tuple[float, float] | None = Field(description="95 %.")
    right: float | None = Field(
        description="The share of pairs whose preferred caption has the higher score; ties half."
    )
    right_interval: tuple[float, float] | None = Field(description="95 %.")


class AgreementTest(Answer):
    """Agreement with people on photos that were not learned from."""

    photos: int
    rated: int = Field(description="Rated captions.")
    pairs: int
    metrics: dict[str, MetricAgreement] = Field(
        description="`this model`, the shipped `accord`, and `cider_d`."
    )


class LearnedJudgements(Answer):
    """The judgements that were learned from."""

    photos: int
    pairs: int = Field(description="A preferred caption above another, rated ones among them.")


class AccordTraining(Answer):
    """The data that a model of accord was learned from."""

    images: int = Field(description="Number of images whose captions gave the words.")
    contrasts: dict[str, int] = Field(description="By kind, how many were learned from.")
    judged: LearnedJudgements | None
    inputs: dict[str, str] = Field(description="Digests of the files.")


class AccordCard(Answer, needs=("weights",)):
    """The description of a trained model of accord."""

    objective: str = Field(description="`contrast` or `judged`.")
    weights: dict[str, float] = Field(description="Of each feature; none is negative.")
    tokenizer: str
    stems: str = Field(description="Comparison of words: by `english` stems, or as `written`.")
    training: AccordTraining
    right: dict[str, float] = Field(
        description="By kind, the share of the contrasts learned from that the model puts right."
    )
    agreement: AgreementTest | None = Field(description="null for `contrast`.")
    recipe: dict[str, Any]


class Learned(Run):
    """The training of a metric, which evaluations can then use."""

    PLACE: ClassVar[str] = "/v1/learned"

    id: Annotated[LearnedId, SAFE_ID]
    dataset: DatasetPinned
    tasks: TupleOf[RunTask]
    metric: str | None = Field(
        description="The metric's name in requests; null until it is trained.",
        examples=["nneval@0123456789ab"],
    )
    model: ModelCard | AccordCard | None
    warnings: TupleOf[Oddity]
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None

    def below(self) -> tuple[str, ...]:
        return ("model",)

    def facts(self) -> tuple[object, ...]:
        return *super().facts(), self.metric or ""
