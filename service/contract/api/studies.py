"""A correlation study, as it is answered."""

from pydantic import BaseModel, Field

from service.contract.api.problems import RunProblem
from service.contract.api.requests import Strict, Whole
from service.contract.api.runs import DatasetPinned, ProgressOut, RunOut, WarningOut, WorkOut
from service.contract.api.texts import DatasetReference, EvaluationId, StudyId, Timestamp
from service.contract.plan.studies import Idf
from service.contract.plan.works import RunStatus


class StudyIn(Strict):
    """A split whose finished evaluations of checkpoints are to be studied, the 200 latest."""

    dataset: DatasetReference
    idf: Idf = Field(
        default="dataset",
        description="CIDEr's document frequencies: of the split, or of each stratum alone.",
    )
    limit: Whole = Field(
        default=20,
        ge=0,
        le=1000,
        description="Pre-gen metrics shown of each metric; the headline ones are always there.",
    )
    deadline: Whole = Field(default=3600, ge=1, le=7 * 24 * 3600)


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
    status: RunStatus
    progress: ProgressOut
    error: RunProblem | None = Field(description="Why it failed; `POST /v1/studies` tries again.")
    created_at: Timestamp


class CorrelationsOut(BaseModel):
    """What pre-gen scores say of post-gen ones on a split, by its own evaluations."""

    dataset: DatasetPinned
    study: StudyOut | None = Field(description="The last one that finished.")
    under_way: StudyUnderWay | None = Field(description="One of more evaluations.")
    none_because: str | None = Field(description="Why there is too little to study.")


class StudyRunOut(RunOut):
    """A correlation study as it was asked for."""

    id: StudyId
    dataset: DatasetPinned
    works: list[WorkOut]
    idf: Idf
    study: StudyOut | None = Field(description="null until it has finished.")
    warnings: list[WarningOut]
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None
