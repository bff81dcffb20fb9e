"""An evaluation, with its gates, forecasts and estimates."""

from typing import Literal

from pydantic import BaseModel, Field

from service.contract.api.problems import RunProblem
from service.contract.api.runs import DatasetPinned, RunOut, WarningOut, WorkOut
from service.contract.api.scores import MetricHealth, ScoreOut
from service.contract.api.texts import Digest, EvaluationId, Timestamp
from service.contract.gates.gates import Verdict


class GateScore(BaseModel):
    """One metric that a gate names, and the baseline's; null is what is not known (yet). Until all
    captions are scored, or for good where the verdict came before, it is an estimate.
    """

    value: float | None
    interval: tuple[float, float] | None
    baseline: float | None = Field(description="Its value in the baseline.")
    evaluation: str | None = Field(description="The baseline's id.")
    difference: float | None = Field(description="The value less the baseline's.")
    p: float | None = Field(
        description="That chance alone makes such a difference (two-sided, by exchanging captions "
        "of images); of `no_significant_drop`."
    )
    minimum_detectable: float | None = Field(
        description="The difference that this test finds 4 times in 5; of `no_significant_drop`."
    )


class ForecastCard(BaseModel):
    """How far a forecast can be trusted, from the evaluations that it was learned from."""

    evaluations: int
    runs: int = Field(
        description="Training runs, told apart by the label `run`; without one, by `branch`; "
        "without either, by the checkpoints' architecture, cell and size."
    )
    predictor: str = Field(description="The pre-gen metric that did best.")
    fit: Literal["line", "monotone"] = Field(
        description="How the metric is drawn over the predictor, which is turned over where it is "
        "a perplexity."
    )
    range: tuple[float | None, float | None] = Field(
        description="Of the predictor, in these evaluations; null: infinite."
    )
    error: float = Field(
        description="Root mean square, about runs that were left out one at a time; every run "
        "weighs the same."
    )
    error_without: float = Field(description="The same of saying the other runs' mean.")
    rank_agreement: float | None = Field(
        description="Spearman's rho of predictor and metric over all evaluations; 1 where better "
        "goes with better; null where one of them is constant."
    )
    rank_agreement_within: float | None = Field(
        description="The same, ranks taken within each run; within each architecture where most "
        "runs have one evaluation."
    )
    coverage: float | None = Field(
        description="The share of evaluations that intervals from the other runs' errors covered; "
        "null with two runs."
    )


class ForecastOut(BaseModel):
    """What a post-gen score will be; or why that cannot be said."""

    value: float | None
    interval: tuple[float, float] | None = Field(
        description="95 %, for a training run that is not in the history."
    )
    none_because: str | None = Field(description="null where there is a value.")
    card: ForecastCard | None = Field(description="null where the history is too short for one.")


class NoForecastOut(BaseModel):
    """No post-gen score can be forecast."""

    none_because: str
    metrics: dict[str, ForecastOut] = Field(
        description="Each metric's own reason and card; empty where the history is too short."
    )


class GateOut(BaseModel):
    """What was demanded, and what has become of it: null until it can be said."""

    gate: str
    verdict: Verdict | None
    detail: str | None
    scores: dict[str, GateScore]


class EstimateOut(BaseModel):
    """A score of all captions, from those that have been decoded so far."""

    value: float
    interval: tuple[float, float] | None = Field(
        description="Where the score of all will lie, with 95 % for all looks together; null while "
        "there are fewer than 100."
    )
    images: int = Field(description="How many have been decoded.")
    of: int


class EvaluationOut(RunOut):
    """A named set of works, and what has come out of them by now."""

    id: EvaluationId
    dataset: DatasetPinned
    checkpoint: Digest | None
    works: list[WorkOut]
    scores: dict[str, ScoreOut] = Field(
        description="By metric, as they arrive: the post-gen ones, the pre-gen ones asked for by "
        "name and, for `all`, the headline ones."
    )
    warnings: list[WarningOut]
    gates: list[GateOut]
    verdict: Verdict | None = Field(
        description="Once every gate has one: `failed` where any failed, else `not_comparable`, "
        "else `undecided` where any is."
    )
    forecast: dict[str, ForecastOut] | NoForecastOut | None = Field(
        description="By post-gen metric, from the pre-gen scores and the evaluations that had "
        "ended when this was submitted; null until the pre-gen scores are there, and where none "
        "or no post-gen metrics were asked for."
    )
    estimate: dict[str, EstimateOut] | None = Field(
        description="By metric, while captions are decoded, as it stands after the latest part of "
        "them; null where there are too few images for parts, or no pre-gen scores."
    )
    health: dict[str, MetricHealth] | None = Field(
        description="By metric, from the probes that had been run on this split when this was "
        "submitted; null where none had."
    )
    error: RunProblem | None = Field(description="The first failure, once the status is `failed`.")
    labels: dict[str, str]
    created_at: Timestamp
    finished_at: Timestamp | None
