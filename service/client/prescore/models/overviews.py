"""Overviews of a team's evaluations: those that need attention, and trainings of captioners."""

from typing import Annotated, Literal

from pydantic import Field

from prescore.models.base import Answer, Brief, OpenEnum, RunProblem, TupleOf
from prescore.models.evaluations import Fall, RepeatedCaption
from prescore.models.identifiers import EvaluationId, Timestamp
from prescore.models.runs import DatasetPinned, RunStatus

AttentionKind = Literal["fall", "gate", "collapsed", "failed"]
MOST_LISTED = 100  # evaluations or trainings
LATEST_LOOKED_AT = 200  # evaluations, of which some need attention
DAYS_LOOKED_AT = 30
MOST_STEPS = 200  # of a training
LATEST_CHECKPOINTS = 2000  # of which trainings are listed


class AttentionGate(Answer, needs=("gate",)):
    """A gate that failed, with its worst score."""

    gate: str
    detail: str | None
    metric: str | None
    difference: float | None = Field(description="From the baseline; null where there is none.")
    interval: tuple[float, float] | None = Field(description="95 %, of `difference`.")


class AttentionItem(Brief, needs=("kind", "evaluation", "dataset")):
    """An evaluation that needs attention."""

    kind: Annotated[AttentionKind, OpenEnum()] = Field(
        description="The first that holds of: `failed`, `gate` (its gates failed), `collapsed` (at "
        "least half of 20 or more images have one caption), `fall`."
    )
    evaluation: EvaluationId
    labels: dict[str, str]
    dataset: DatasetPinned
    at: Timestamp = Field(description="Time at which it ended.")
    fall: Fall | None = Field(description="The largest, as a share of what was expected.")
    gate: AttentionGate | None = Field(description="The first that failed.")
    caption: RepeatedCaption | None
    error: RunProblem | None

    def facts(self) -> tuple[object, ...]:
        return self.evaluation, self.kind, self.dataset, self.reason()

    def reason(self) -> str:
        """The reason in a line."""
        if self.error is not None:
            return self.error.detail
        if self.gate is not None:
            return f"{self.gate.gate}: {self.gate.detail or 'failed'}"
        if self.caption is not None:
            return f"{self.caption.images} of {self.caption.of} images: {self.caption.text}"
        return "" if self.fall is None else self.fall.sentence()


class AttentionList(Answer, needs=("items",)):
    items: TupleOf[AttentionItem] = Field(
        json_schema_extra={"maxItems": MOST_LISTED}, description="The one that ended last first."
    )


class TrainingStep(Answer, needs=("step", "evaluation", "status")):
    """A checkpoint of a training."""

    step: float
    evaluation: EvaluationId
    value: float | None
    interval: tuple[float, float] | None
    status: Annotated[RunStatus, OpenEnum()]
    is_fallen: bool = Field(description="True where the evaluation's `falls` name the metric.")
    fall: Fall | None = Field(
        description="By the metric, or else by another one: a `run` before a `trend` before a "
        "`step`; null without any."
    )
    is_collapsed: bool = Field(
        description="True where the evaluation's `collapsed` names a caption."
    )


class BestStep(Answer, needs=("step", "evaluation", "value")):
    """The checkpoint with the best score of a training."""

    step: float
    evaluation: EvaluationId
    value: float


class TrainingForecast(Answer, needs=("step",)):
    """The forecast of the latest checkpoint that has no measured score."""

    value: float | None
    interval: tuple[float, float] | None
    step: float


class CaptionerTraining(Brief, needs=("run", "dataset")):
    """A training of a captioner: the checkpoints on a split with one label `run`."""

    run: str
    dataset: DatasetPinned
    metric: str
    higher_is_better: bool | None
    checkpoints: int = Field(description="Number of different steps.")
    steps: TupleOf[TrainingStep] = Field(
        json_schema_extra={"maxItems": MOST_STEPS},
        description=f"In ascending order; of more than {MOST_STEPS}, the first, the last, the "
        "best, falls, and others evenly. Of a step that was evaluated twice, the latest score.",
    )
    best: BestStep | None
    forecast: TrainingForecast | None
    running: int = Field(description="Number of its evaluations that have not ended.")
    latest_at: Timestamp = Field(description="Time at which its latest one was submitted.")

    def facts(self) -> tuple[object, ...]:
        best = "" if self.best is None else f"{self.metric}={self.best.value:.4g}"
        return self.run, self.dataset, f"{self.checkpoints} checkpoints", best


class CaptionerTrainingList(Answer, needs=("items",)):
    items: TupleOf[CaptionerTraining] = Field(
        json_schema_extra={"maxItems": MOST_LISTED},
        description="The one whose evaluation was submitted last first.",
    )
