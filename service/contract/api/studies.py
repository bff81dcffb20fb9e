"""Correlation studies: how pre-gen metrics correlate with post-gen metrics."""

from pydantic import BaseModel, Field

from service.contract.api.answers import RunProblem
from service.contract.api.runs import DatasetPinned, ProgressOut, RunOut, WarningOut, WorkOut
from service.contract.api.strict import Strict, Whole
from service.contract.api.texts import DatasetReference, EvaluationId, StudyId, Timestamp
from service.contract.plan.studies import Idf
from service.contract.plan.works import RunStatus


class StudyIn(Strict):
    """Study the 200 latest finished evaluations of checkpoints on a split."""

    dataset: DatasetReference
    idf: Idf = Field(
        default="dataset",
        description="Where CIDEr counts document frequencies: in the split, or in each stratum.",
    )
    limit: Whole = Field(
        default=20,
        ge=0,
        le=1000,
        description="How many pre-gen metrics to show for each post-gen metric, besides the "
        "headline ones.",
    )
    deadline: Whole = Field(default=3600, ge=1, le=7 * 24 * 3600)


class CorrelationOut(BaseModel):
    """How a pre-gen metric correlates with a post-gen metric."""

    place: int = Field(description="The rank by R², the highest first.")
    metric: str
    r: float | None = Field(description="Pearson's r over the strata of images of all models.")
    r2: float | None
    p: float | None = Field(
        description="For independent rows. They are not independent: the same images are in five "
        "rows."
    )
    spearman: float | None = Field(
        description="Spearman's rho of models over the whole split: does the pre-gen metric say "
        "which model is better? null where either metric is the same for all models."
    )
    spearman_p: float | None = Field(
        description="Two-sided; exact up to 10 models: the share of all their orders in which "
        "`spearman` is as far from 0. Of more models it is the usual approximation, which is too "
        "small for few. null for fewer than 5 models."
    )
    models: int = Field(description="How many models `spearman` is computed over.")


class CorrelatedOut(BaseModel):
    """A post-gen metric, and the pre-gen metrics that correlate with it."""

    rows: int = Field(description="Strata of images with this metric, 15 of each model.")
    of_images: float | None = Field(
        description="The share of the metric's variance that lies between strata of images and not "
        "between models; R² measures mostly this."
    )
    reason: str | None = Field(description="Why there are no correlations.")
    correlations: list[CorrelationOut]


class RemainingOut(BaseModel):
    of: int
    remain: int
    infinite: int = Field(description="Metrics left out: infinite in some row.")
    constant: int = Field(description="Metrics left out: the same in all rows.")


class LeftOut(BaseModel):
    evaluation: EvaluationId
    metric: str | None = Field(description="null: the whole evaluation is left out.")
    reason: str


class StudyOut(BaseModel):
    """The result of a study."""

    idf: Idf = Field(description="Where CIDEr counts document frequencies.")
    evaluations: list[EvaluationId] = Field(
        description="One evaluation of each model, the latest first."
    )
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
    """The latest correlation study of a split, and the one under way."""

    dataset: DatasetPinned
    study: StudyOut | None = Field(description="The last study that finished.")
    under_way: StudyUnderWay | None = Field(
        description="A study of more evaluations that is under way."
    )
    none_because: str | None = Field(description="Why there is too little to study.")


class StudyRunOut(RunOut):
    """A correlation study that was requested."""

    id: StudyId
    dataset: DatasetPinned
    works: list[WorkOut]
    idf: Idf
    study: StudyOut | None = Field(description="null until it has finished, and in lists.")
    warnings: list[WarningOut]
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None
