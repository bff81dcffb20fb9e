"""Summaries of tasks and requests of runs, as the database stores them in JSON.

Jobs return these models and readers parse them, so that no key is spelled anywhere else.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from prescore.models.choices import IfNoBaseline, Until
from prescore.models.comparisons import Compared
from prescore.models.evaluations import Estimate, Forecast
from prescore.models.learned import AccordCard, ModelCard
from prescore.models.metrics import MetricHealth, Score
from prescore.models.probes import ProbeRow
from prescore.models.studies import LeftOut, Remaining
from service.contract.api.evaluations import DecodingInput
from service.contract.column_options import ColumnOptions
from service.contract.formats import outputs
from service.contract.formats.strict_json import replace_infinite
from service.contract.metrics import catalogue

TaskRow = Mapping[str, Any]  # a task of a run, as selected from the database
_Summary = TypeVar("_Summary", bound=BaseModel)
_NONE = ("", "{}")
_COMMON_CHARACTERS = 200


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class ScoreSummary(_Frozen):
    """Scores by metric, with intervals (null: none); one signature for all, or one for each.

    `draws`: of `contract.metrics.draws`, in base64; stored apart from the summary. `flat`: metrics
    that say the same of all captions, with the number of captions.
    """

    scores: dict[str, float]
    intervals: dict[str, tuple[float, float] | None] = {}
    resampling: dict[str, Any] = {}
    draws: dict[str, str] = {}
    flat: dict[str, int] = {}
    signature: str | dict[str, str]


class ConversionSummary(_Frozen):
    """Facts in the header of a converted checkpoint (`formats.model_formats`)."""

    converted: dict[str, Any]


class CommonCaption(_Frozen):
    """A caption that at least half of the images have; its beginning, where it is long."""

    text: str
    images: int
    of: int

    @classmethod
    def find(cls, captions: Sequence[str]) -> "CommonCaption | None":
        """Find it among captions of twenty or more images; None where there is none."""
        if len(captions) < outputs.FEW:
            return None
        ((text, images),) = Counter(captions).most_common(1)
        if 2 * images < len(captions):
            return None
        return cls(text=text[:_COMMON_CHARACTERS], images=images, of=len(captions))


class DecodingSummary(_Frozen):
    """Numbers of decoded captions, of different ones, and of those without blanks between words;
    and the caption that at least half of them are.
    """

    decoded: int
    distinct: int
    unbroken: int = 0
    common: CommonCaption | None = None


class UndecodedPicture(_Frozen):
    image: str
    reason: str


class PicturesSummary(_Frozen):
    """Numbers of pictures that were tried, and of those that could not be decoded."""

    tried: int
    undecoded: int
    unseen: list[UndecodedPicture]


class SignatureSummary(_Frozen):
    """Signatures of scores, without the scores."""

    signature: str | dict[str, str]


class DifferenceBounds(_Frozen):
    """Bounds of the difference of all images from the baseline, valid for all looks and for all
    such metrics together, and of its standard error.
    """

    low: float
    high: float
    error: float


class EstimateSummary(_Frozen):
    """Estimates by metric, from the captions that are decoded so far."""

    estimate: dict[str, Estimate]
    signature: dict[str, str]
    differences: dict[str, DifferenceBounds] = {}  # from baselines, for gates of a margin


class ComparisonSummary(_Frozen):
    """The comparison of two systems by metric; values may be infinite."""

    comparison: dict[str, Compared]
    resampling: dict[str, Any] = {}
    images_compared: int | None = None  # None in those of before


class ForecastSummary(_Frozen):
    forecast: dict[str, Forecast]


class ProbeSummary(_Frozen):
    rows: list[ProbeRow]


class HealthSummary(_Frozen):
    health: dict[str, MetricHealth]


# Kinds that are not named here have `ScoreSummary`, or no summary.
SUMMARIES: Mapping[str, type[BaseModel]] = {
    "checkpoint": ConversionSummary,
    "captions": DecodingSummary,
    "features": PicturesSummary,
    "thumbnails": PicturesSummary,
    "look": EstimateSummary,
    "comparison": ComparisonSummary,
    "forecast": ForecastSummary,
    "probe": ProbeSummary,
    "health": HealthSummary,
    "learned": ModelCard,
    "learned_accord": AccordCard,
}


def build_score(
    name: str,
    value: float | None,
    signature: str | Mapping[str, str],
    interval: tuple[float, float] | None = None,
) -> Score:
    """The score of a metric (or alias); `signature` is one for all scores, or one for each."""
    spec = catalogue.find_metric(name)
    return Score(
        value=replace_infinite(value),
        family=spec.family,
        higher_is_better=spec.higher_is_better,
        interval=interval,
        signature=signature if isinstance(signature, str) else signature[spec.name],
    )


def find_summary_model(kind: str) -> type[BaseModel]:
    return SUMMARIES.get(kind, ScoreSummary)


def parse_summary(row: TaskRow, model: type[_Summary], *, partial: bool = False) -> _Summary | None:
    """A task's summary, parsed, if its kind has this model and the task is done; else None. With
    `partial`, also the summary of a running task, of the parts that are done.
    """
    text = row["summary"] or ""
    if find_summary_model(row["kind"]) is not model or text in _NONE:
        return None
    if row["status"] != "done" and not partial:
        return None
    return model.model_validate_json(text)


class PastEvaluation(_Frozen):
    """Evaluation from which a forecast learns: its run, and scores by metric (null: infinite)."""

    run: str
    architecture: str
    scores: dict[str, float | None]


class ForecastHistory(_Frozen):
    """The file that the task `forecast` reads: the latest evaluation first."""

    metrics: list[str]
    evaluations: list[PastEvaluation]


class StudyMetric(_Frozen):
    """A post-gen metric in a study's file, with its correlations to pre-gen metrics."""

    rows: int
    of_images: float | None
    reason: str | None
    correlations: list["StudyPair"]


class StudyPair(_Frozen):
    """`r`, `r2` and `p` of a pre-gen metric, over all rows and within each dataset."""

    metric: str
    datasets: dict[str, dict[str, Any]]


class StudyFile(_Frozen):
    """The file that the task `study` writes."""

    rows: int
    pregen: Remaining
    metrics: dict[str, StudyMetric]


# What runs keep of their requests; fields newer than the row have defaults.
class StoredBaseline(_Frozen):
    """The baseline of one metric: an evaluation, or why there is none. `scored_on`: the version and
    split of its dataset; `label`: by which it was found; `result`: the digest of its scores of each
    image; `comparison`: the name of the task that compares with it.
    """

    evaluation: str | None = None
    scored_on: str | None = None
    label: str | None = None
    value: float | None = None
    interval: tuple[float, float] | None = None
    signature: str | None = None
    result: str | None = None
    comparison: str | None = None
    none_because: str | None = None
    failed: bool = False  # its own gates
    is_first: bool = False  # there is none because nothing has been scored that could be one


class MissingForecast(_Frozen):
    """A request without forecasts, and why."""

    none_because: str


# Fields of a request that decide how scores are computed; others decide which, of what, and when.
COMPUTED_BY = (*ColumnOptions.model_fields, "decoding", "tokenizer", "idf", "bertscore")


class StoredEvaluation(_Frozen, ColumnOptions):
    """An evaluation's request; `baselines`, `health`, `forecast`: as known when submitted.
    `own_prompt`: the checkpoint's; `common`: of captions that were sent.
    """

    checkpoint: str | None = None
    columns: str | None = None
    pregen: Literal["all"] | list[str] | None = None
    postgen: list[str] = []
    gates: list[str] = []
    trust: list[str] = []
    if_no_baseline: IfNoBaseline = "undecided"
    until: Until = "done"
    subset: bool = False
    decoding: DecodingInput = DecodingInput()
    tokenizer: str = "ptb"
    idf: str = "dataset"
    bertscore: dict[str, Any] = {}
    baselines: dict[str, StoredBaseline] = {}
    health: dict[str, MetricHealth] | None = None
    forecast: MissingForecast | None = None
    own_prompt: str | None = None
    common: CommonCaption | None = None

    def is_computed_as(self, other: "StoredEvaluation") -> bool:
        """Tell whether both requests compute scores in the same, comparable way."""
        return all(getattr(self, name) == getattr(other, name) for name in COMPUTED_BY)


class StoredComparison(_Frozen):
    a: str
    b: str
    metrics: list[str]


class StoredStudy(_Frozen):
    idf: Literal["dataset", "stratum"]
    evaluations: list[str]
    left_out: list[LeftOut]
    limit: int = 20
