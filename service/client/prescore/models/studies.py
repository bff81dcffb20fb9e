"""Correlation studies: how pre-gen metrics correlate with post-gen metrics."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from prescore.models.base import Answer, Brief, OpenEnum, RunProblem, TupleOf
from prescore.models.identifiers import SAFE_ID, EvaluationId, StudyId, Timestamp
from prescore.models.runs import DatasetPinned, Oddity, Progress, Run, RunStatus, RunTask
from prescore.plain_text import format_count

StudyIdf = Literal["dataset", "stratum"]
_StudyIdf = Annotated[StudyIdf, OpenEnum()]


class Correlation(Answer, needs=("place", "metric")):
    """Correlation of a pre-gen metric with a post-gen metric."""

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
    models: int = Field(description="Number of models over which `spearman` is computed.")


class Correlated(Answer):
    """A post-gen metric, and the pre-gen metrics that correlate with it."""

    rows: int = Field(description="Strata of images with this metric, 15 of each model.")
    of_images: float | None = Field(
        description="The share of the metric's variance that lies between strata of images and not "
        "between models; R² measures mostly this."
    )
    reason: str | None = Field(description="Why there are no correlations.")
    correlations: TupleOf[Correlation]


class Remaining(Answer):
    of: int
    remain: int
    infinite: int = Field(description="Metrics left out: infinite in some row.")
    constant: int = Field(description="Metrics left out: the same in all rows.")


class LeftOut(Answer, needs=("evaluation",)):
    evaluation: EvaluationId
    metric: str | None = Field(description="null: the whole evaluation is left out.")
    reason: str


class Study(Brief):
    """The result of a study."""

    idf: _StudyIdf = Field(description="Images in which CIDEr counts document frequencies.")
    evaluations: TupleOf[EvaluationId] = Field(
        description="One evaluation of each model, the latest first."
    )
    left_out: TupleOf[LeftOut]
    rows: int
    pregen: Remaining
    metrics: dict[str, Correlated]
    finished_at: Timestamp

    def facts(self) -> tuple[object, ...]:
        return format_count(len(self.evaluations), "model"), *self.metrics


class StudyUnderWay(Answer, needs=("status",)):
    status: Annotated[RunStatus, OpenEnum()]
    progress: Progress
    error: RunProblem | None = Field(description="Why it failed; `POST /v1/studies` tries again.")
    created_at: Timestamp


class Correlations(Brief, needs=("dataset",)):
    """The latest correlation study of a split, and the one under way."""

    dataset: DatasetPinned
    study: Study | None = Field(description="The last study that finished.")
    under_way: StudyUnderWay | None = Field(
        description="A study of more evaluations that is under way."
    )
    none_because: str | None = Field(description="Why there is too little to study.")

    def facts(self) -> tuple[object, ...]:
        return self.dataset, self.study or self.none_because or ""


class StudyRun(Run):
    """A correlation study that was requested."""

    PLACE: ClassVar[str] = "/v1/studies"

    id: Annotated[StudyId, SAFE_ID]
    dataset: DatasetPinned
    tasks: TupleOf[RunTask]
    idf: _StudyIdf
    study: Study | None = Field(description="null until it has finished, and in lists.")
    warnings: TupleOf[Oddity]
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None
