"""A correlation study, as it is answered."""

from pydantic import BaseModel, Field

from service.contract.api.problems import RunProblem
from service.contract.api.runs import DatasetPinned, ProgressOut
from service.contract.api.texts import EvaluationId, Timestamp
from service.contract.plan.studies import Idf
from service.contract.plan.works import EvaluationStatus


class CorrelationOut(BaseModel):
    """How a pre-gen metric goes with a post-gen one."""

    place: int = Field(description="By R², the highest first.")
    metric: str
    r: float | None = Field(description="Pearson's, over strata of images of all models.")
    r2: float | None
    p: float | None = Field(
        description="For independent rows, which they are not: the same images are in five of them."
    )
    spearman: float | None = Field(
        description="The rank agreement of models over the whole split: does the metric say which "
        "one is better? null where either is the same for all."
    )
    spearman_p: float | None
    models: int = Field(description="That the rank agreement is of.")


class CorrelatedOut(BaseModel):
    """A post-gen metric, and the pre-gen ones that go with it."""

    rows: int = Field(description="Strata of images, 15 of each model, that have the metric.")
    of_images: float | None = Field(
        description="The share of its variance that lies between strata of images rather than "
        "between models: R² is about that."
    )
    reason: str | None = Field(description="Why there are no correlations.")
    correlations: list[CorrelationOut]


class RemainingOut(BaseModel):
    of: int
    remain: int
    infinite: int = Field(description="Left out: infinite in some row.")
    constant: int = Field(description="Left out: the same in all rows.")


class LeftOut(BaseModel):
    evaluation: EvaluationId
    metric: str | None = Field(description="null: all of it.")
    reason: str


class StudyOut(BaseModel):
    """One that has finished."""

    idf: Idf = Field(description="Where CIDEr counts documents.")
    evaluations: list[EvaluationId] = Field(description="One for each model, the latest first.")
    left_out: list[LeftOut]
    rows: int
    pregen: RemainingOut
    metrics: dict[str, CorrelatedOut]
    finished_at: Timestamp


class StudyUnderWay(BaseModel):
    status: EvaluationStatus
    progress: ProgressOut
    error: RunProblem | None = Field(description="It is tried again by who asks a minute later.")
    created_at: Timestamp


class CorrelationsOut(BaseModel):
    """What pre-gen scores say of post-gen ones on a split, by its own evaluations."""

    dataset: DatasetPinned
    study: StudyOut | None = Field(description="The last one that finished.")
    under_way: StudyUnderWay | None = Field(description="One of more evaluations.")
    none_because: str | None = Field(description="Why none is planned.")
