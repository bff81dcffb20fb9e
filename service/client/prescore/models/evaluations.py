"""Evaluations, with their gates, forecasts and estimates; and the labels that they have."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from prescore.models.base import OR_NONE, Answer, Brief, OpenEnum, RunProblem, TupleOf
from prescore.models.identifiers import SAFE_ID, Digest, EvaluationId, Timestamp
from prescore.models.metrics import MetricHealth, Score
from prescore.models.runs import DatasetPinned, Oddity, Run, RunTask
from prescore.models.tables import Tabular

SCORES_SHOWN = 4  # in a short form
MOST_LABELS = 100  # names, and values of each
LABELLED = 5000  # evaluations whose labels are counted, the latest
Verdict = Literal["passed", "failed", "undecided", "not_comparable"]
_Verdict = Annotated[Verdict, OpenEnum()]


class GateScore(Answer):
    """One metric that a gate names, and its baseline; null: not known, or not yet. Until all
    captions are scored, or for ever where the verdict came earlier, `value` is an estimate.
    """

    value: float | None
    interval: tuple[float, float] | None
    baseline: float | None = Field(description="The baseline's value.")
    evaluation: str | None = Field(description="The id of the baseline's evaluation.")
    difference: float | None = Field(description="value - baseline.")
    difference_interval: tuple[float, float] | None = Field(
        description="95 %, paired; it, p and `minimum_detectable` only for gates of a difference, "
        "`not_worse`, `better` and `no_significant_drop`."
    )
    margin: float | None = Field(
        description="Amount by which the value may be worse than the baseline's, as a number: of "
        "`not_worse` the margin, of `cider_d >= baseline - 0.01` 0.01; 0 of `better`, below 0 "
        "where the value must be better; null where a gate has no such bound."
    )
    p: float | None = Field(
        description="The probability that chance alone makes a difference this large (two-sided, "
        "by exchanging the captions of images)."
    )
    minimum_detectable: float | None = Field(
        description="The difference that this test finds in 4 of 5 cases."
    )


class Gate(Answer, needs=("gate",)):
    """A gate and its verdict; null until it is decided."""

    gate: str
    verdict: _Verdict | None
    detail: str | None
    no_baseline: bool = Field(
        description="True if nothing has been scored yet that could be its baseline, as on a first "
        "run: the gate is then `not_comparable`, unless `if_no_baseline` says otherwise. A run "
        "found by a label or as the best has succeeded, and its gates have passed or it has none. "
        "False where another version of the dataset has a baseline, where a run with the label has "
        "not ended, and where the label is nearly one of the split's runs and the evaluation does "
        "not have it itself."
    )
    baseline_failed: bool = Field(
        description="True if the evaluation that is its baseline failed its own gates, which is "
        "possible where `baseline` is its id."
    )
    scores: dict[str, GateScore]

    @property
    def passed_unheld(self) -> bool:
        """True where it passed for want of a baseline, as `--if-no-baseline pass` counts it."""
        return self.no_baseline and self.verdict == "passed"


class ForecastCard(Answer):
    """Accuracy of a forecast, measured on the evaluations that it was learned from."""

    evaluations: int
    runs: int = Field(
        description="Training runs, told apart by the label `run`; without one, by `branch`; "
        "without either, by the checkpoints' architecture, cell and size."
    )
    predictor: str = Field(description="The pre-gen metric with the least error.")
    fit: Annotated[Literal["line", "monotone"], OpenEnum()] = Field(
        description="Function that fits the metric to the predictor, whose sign is changed where "
        "it is a perplexity."
    )
    range: tuple[float | None, float | None] = Field(
        description="The predictor's lowest and highest value in these evaluations; null: infinite."
    )
    error: float = Field(
        description="The root mean square error, each run forecast from the others; every run has "
        "the same weight."
    )
    error_without: float = Field(
        description="The root mean square error of forecasting the other runs' mean."
    )
    rank_agreement: float | None = Field(
        description="Spearman's rho of predictor and metric over all evaluations; 1: a better "
        "predictor always means a better metric; null where one of them is constant."
    )
    rank_agreement_within: float | None = Field(
        description="Spearman's rho with ranks taken within each run, or within each architecture "
        "where most runs have one evaluation."
    )
    coverage: float | None = Field(
        description="The share of evaluations inside the intervals that come from the other runs' "
        "errors; null with two runs."
    )


class Forecast(Answer):
    """The forecast of a post-gen score, or the reason why there is none."""

    value: float | None
    interval: tuple[float, float] | None = Field(
        description="95 %, for a training run that is not in the history."
    )
    beyond: float | None = Field(
        description="How much better its own predictor is than the better end of the card's "
        "`range`, where the forecast goes beyond what two other runs have shown; null where it "
        "does not."
    )
    none_because: str | None = Field(description="null where there is a value.")
    card: ForecastCard | None = Field(description="null where the history is too short for one.")


class NoForecast(Answer, needs=("none_because",)):
    """Why no post-gen score can be forecast."""

    none_because: str
    metrics: dict[str, Forecast] = Field(
        description="Each metric's own reason and card; empty where the history is too short."
    )


class Estimate(Answer):
    """An estimate of the score of all captions, from the captions decoded so far."""

    value: float
    interval: tuple[float, float] | None = Field(
        description="Interval in which the score of all captions will lie, with 95 % for all looks "
        "together; null while there are fewer than 100 captions."
    )
    images: int = Field(description="Images whose captions are decoded.")
    of: int
    history: int = Field(
        0, description="Past systems whose scores of single images the estimate uses; 0: none."
    )


class FallBeside(Answer, needs=("evaluation",)):
    """The checkpoint of another training at the same step."""

    evaluation: EvaluationId
    labels: dict[str, str]


class Fall(Answer, needs=("metric", "kind")):
    """A checkpoint that is worse than its training, or another one, lets expect."""

    metric: str
    kind: Annotated[Literal["step", "trend", "run"], OpenEnum()] = Field(
        description="`step`: worse than the step before. `trend`: worse than the line between the "
        "step before and the step after. `run`: it gained less since the step before than other "
        "trainings did, and is worse than the nearest one of them now."
    )
    step: float
    value: float
    expected: float = Field(
        description="The score of the step before, the line's, or that of the step before and the "
        "gain of the others."
    )
    difference: float = Field(
        description="`value` less the step before, less the line, or less the score of `beside`."
    )
    interval: tuple[float, float] | None = Field(description="95 %, of `difference`.")
    beside: FallBeside | None = Field(description="null but for `run`.")

    def sentence(self) -> str:
        """The fall in a sentence."""
        low, high = sorted(map(abs, self.interval or (self.difference, self.difference)))
        within = f" [{low:.3g}, {high:.3g}]" if self.interval else ""
        side = "below" if self.difference < 0 else "above"
        return (
            f"{self.metric} {self.value:.4g} at step {self.step:.12g} is "
            f"{abs(self.difference):.3g}{within} {side} {self._name_reference()}"
        )

    def _name_reference(self) -> str:
        if self.kind == "run" and self.beside is not None:
            return f"{self.beside.labels.get('run', self.beside.evaluation)} at the same step"
        named = {"step": "the step before", "trend": "the line between the steps beside it"}
        return named.get(self.kind, "what was expected")


class RepeatedCaption(Answer, needs=("text",)):
    """A caption that at least half of 20 or more images have."""

    text: str = Field(description="Its first 200 characters.")
    images: int
    of: int


class Evaluation(Tabular, Run):
    """An evaluation: its tasks, and their results so far."""

    PLACE: ClassVar[str] = "/v1/evaluations"

    id: Annotated[EvaluationId, SAFE_ID]
    dataset: DatasetPinned
    checkpoint: Digest | None
    columns: Digest | None = Field(description="The columns that were brought; null: none.")
    prompt: str | None = Field(
        description="The text that the model reads before a caption: the request's, or the "
        "checkpoint's own; null: it reads none."
    )
    tasks: TupleOf[RunTask]
    scores: dict[str, Score] = Field(
        description="By metric, as they are computed: the post-gen scores, the pre-gen scores "
        "requested by name and, for `all`, the headline ones."
    )
    warnings: TupleOf[Oddity]
    collapsed: RepeatedCaption | None = Field(
        description="The caption that at least half of 20 or more images have; null where there is "
        "none, and until the captions are decoded."
    )
    gates: TupleOf[Gate]
    verdict: _Verdict | None = Field(
        description="null until every gate has a verdict; `failed` where any gate failed, else "
        "`not_comparable` or `undecided` where any is."
    )
    forecast: Annotated[dict[str, Forecast] | NoForecast | None, OR_NONE] = Field(
        description="By post-gen metric, from the pre-gen scores and the evaluations that had "
        "ended when this one was submitted; null until the pre-gen scores are computed, and where "
        "pre-gen or post-gen metrics were not requested."
    )
    estimate: Annotated[dict[str, Estimate] | None, OR_NONE] = Field(
        description="By metric, while captions are decoded, from the parts that are decoded; null "
        "where there are too few images for parts, or no pre-gen scores."
    )
    health: Annotated[dict[str, MetricHealth] | None, OR_NONE] = Field(
        description="By metric, from the probes that were finished on this split when this "
        "evaluation was submitted; null where there were none."
    )
    falls: TupleOf[Fall] = Field(
        description="Of a checkpoint of a training, by the labels `run` and `step` or `epoch`; at "
        "most one of each kind and post-gen metric. Decided when it ends, and again when another "
        "checkpoint of its training, or of one beside it, ends, is deleted or gets other labels."
    )
    error: RunProblem | None = Field(description="The first failure, once the status is `failed`.")
    labels: dict[str, str]
    created_at: Timestamp
    finished_at: Timestamp | None

    @property
    def url(self) -> str:
        """The URL at which the page shows it to people."""
        return f"{self._origin.pages or self._origin.service}/ui/evaluations/{self.id}"

    def to_rows(self) -> list[dict[str, Any]]:
        return [{"metric": name, **score.to_row()} for name, score in self.scores.items()]

    def below(self) -> tuple[str, ...]:
        return "pregen", "captions", "events"

    def facts(self) -> tuple[object, ...]:
        known = {name: one.value for name, one in self.scores.items() if one.value is not None}
        shown = [f"{name}={value:.4g}" for name, value in known.items()][:SCORES_SHOWN]
        return *super().facts(), self.verdict or "", *shown


class LabelValue(Answer, needs=("value",)):
    value: str
    evaluations: int = Field(description=f"Of the latest {LABELLED:,}, those with this label.")
    latest: Timestamp = Field(description="Time at which the latest of them was submitted.")


class Label(Brief, needs=("name",)):
    """A label's name, and its values."""

    name: str = Field(examples=["branch"])
    values: TupleOf[LabelValue] = Field(
        json_schema_extra={"maxItems": MOST_LABELS},
        description="The one of the latest evaluation first.",
    )
    more_values: bool = Field(description="There are values that are not shown.")

    def facts(self) -> tuple[object, ...]:
        return self.name, *(one.value for one in self.values[:3])


class LabelList(Answer, needs=("items",)):
    items: TupleOf[Label] = Field(
        json_schema_extra={"maxItems": MOST_LABELS},
        description="The name that the latest evaluation has first.",
    )
    more_names: bool = Field(description="There are names that are not shown.")
