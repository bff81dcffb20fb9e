"""What works leave in the record, a model for each kind's summary; what runs keep of requests.

Jobs return these and readers parse them: no key of theirs is spelled anywhere else.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from service.contract.api.comparisons import ComparedOut
from service.contract.api.evaluations import EstimateOut, ForecastOut
from service.contract.api.learned import ModelOut
from service.contract.api.probes import ProbeRow
from service.contract.api.scores import MetricHealth
from service.contract.api.studies import LeftOut, RemainingOut

Row = Mapping[str, Any]  # a work of a run, as the record has it
_Summary = TypeVar("_Summary", bound=BaseModel)
_NONE = ("", "{}")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Scored(_Frozen):
    """By metric; an interval is null where none is known. One signature for all, or one of each."""

    scores: dict[str, float]
    intervals: dict[str, tuple[float, float] | None] = {}
    resampling: dict[str, Any] = {}
    signature: str | dict[str, str]


class Estimated(_Frozen):
    """What a look at captions that are being decoded says of all of them, by metric."""

    estimate: dict[str, EstimateOut]
    signature: dict[str, str]


class Compared(_Frozen):
    """By metric; values may be infinite."""

    comparison: dict[str, ComparedOut]
    resampling: dict[str, Any] = {}


class Forecasts(_Frozen):
    forecast: dict[str, ForecastOut]


class ProbeTable(_Frozen):
    rows: list[ProbeRow]


class Health(_Frozen):
    health: dict[str, MetricHealth]


Model = ModelOut  # a trained metric's card

# Of kinds that are not named here it is scores, or nothing.
SUMMARIES: Mapping[str, type[BaseModel]] = {
    "look": Estimated,
    "comparison": Compared,
    "forecast": Forecasts,
    "probe": ProbeTable,
    "health": Health,
    "learned": Model,
}


def of(row: Row, model: type[_Summary], *, partial: bool = False) -> _Summary | None:
    """A work's summary, where it is one of this model and the work is done; with `partial`, that of
    the parts which are done may stand for it.
    """
    text = row["summary"] or ""
    if SUMMARIES.get(row["kind"], Scored) is not model or text in _NONE:
        return None
    if row["status"] != "done" and not partial:
        return None
    return model.model_validate_json(text)


class PastEvaluation(_Frozen):
    """What a forecast learns from one evaluation: its training run, and scores by metric; null is
    infinite.
    """

    run: str
    architecture: str
    scores: dict[str, float | None]


class ForecastHistory(_Frozen):
    """The file that a forecast's work reads: the latest evaluation first."""

    metrics: list[str]
    evaluations: list[PastEvaluation]


class StudyMetric(_Frozen):
    """A post-gen metric in a study's file; of each pre-gen metric `r`, `r2` and `p`."""

    rows: int
    of_images: float | None
    reason: str | None
    correlations: list["StudyPair"]


class StudyPair(_Frozen):
    """A pre-gen metric beside it, over all and within each dataset."""

    metric: str
    datasets: dict[str, dict[str, Any]]


class StudyFile(_Frozen):
    """What a study's work writes."""

    rows: int
    pregen: RemainingOut
    metrics: dict[str, StudyMetric]


class _Kept(_Frozen):
    """As it was taken in; what older versions did not keep has its default."""


class Past(_Kept):
    """What stands for the past of one metric: an evaluation, or why there is none. `result` is the
    digest of what is known of it image by image, `comparison` the name of the work that compares.
    """

    evaluation: str | None = None
    value: float | None = None
    interval: tuple[float, float] | None = None
    signature: str | None = None
    result: str | None = None
    comparison: str | None = None
    none_because: str | None = None


class Unforeseen(_Kept):
    """Why there is no forecast."""

    none_because: str


class EvaluationKept(_Kept):
    """`baselines`, `health` and `forecast` were looked up when it was submitted."""

    checkpoint: str | None = None
    pregen: Literal["all"] | list[str] | None = None
    postgen: list[str] = []
    gates: list[str] = []
    trust: list[str] = []
    until: Literal["done", "verdict"] = "done"
    subset: bool = False
    decoding: dict[str, Any] = {}
    tokenizer: str = "ptb"
    idf: str = "dataset"
    bertscore: dict[str, Any] = {}
    baselines: dict[str, Past] = {}
    health: dict[str, MetricHealth] | None = None
    forecast: Unforeseen | None = None

    def is_computed_as(self, other: "EvaluationKept") -> bool:
        """Whether their scores compare."""
        how = ("decoding", "tokenizer", "idf", "bertscore")
        return all(getattr(self, name) == getattr(other, name) for name in how)


class ComparisonKept(_Kept):
    a: str
    b: str
    metrics: list[str]


class StudyKept(_Kept):
    idf: Literal["dataset", "stratum"]
    evaluations: list[str]
    left_out: list[LeftOut]
    limit: int = 20
