"""What the HTTP interface answers. Nothing has a default: what is said is there."""

from collections.abc import Mapping
from typing import Generic, Literal, Self, TypeVar

from pydantic import BaseModel, Field

from service.contract import catalogue
from service.contract.catalogue import Family
from service.contract.gates import Verdict
from service.contract.strict_json import finite
from service.contract.texts import ComparisonId, Digest, EvaluationId, ProbesId, Timestamp
from service.contract.works import EvaluationStatus, WorkStatus

Item = TypeVar("Item")


class FieldProblem(BaseModel):
    """One thing that is wrong with a request, and where."""

    pointer: str = Field(
        description="A JSON pointer (RFC 6901) into the body; or `/path/NAME`, `/query/NAME`, "
        "`/header/NAME`."
    )
    detail: str


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    type: str = Field(json_schema_extra={"format": "uri"})
    title: str = Field(description="The status in words.")
    status: int = Field(description="The status of the answer.")
    code: str = Field(description="What programs may hold on to.", examples=["not_found"])
    detail: str = Field(description="What was expected, what was found.")
    request_id: str = Field(description="By which the log knows this request.")
    errors: list[FieldProblem] = Field(description="Up to 100 places; none where there is no one.")


class RunProblem(BaseModel):
    """Why a work, or the evaluation that it belongs to, failed."""

    code: str = Field(examples=["timeout"])
    detail: str


class DatasetPinned(BaseModel):
    """One split of one version."""

    name: str
    version: str
    digest: str
    split: str


class ProgressOut(BaseModel):
    done: int
    total: int


class WorkOut(BaseModel):
    """One computation of an evaluation."""

    name: str = Field(examples=["columns"])
    kind: str
    status: WorkStatus
    progress: ProgressOut
    attempts: int
    seconds: float | None = Field(description="Of its last attempt; null before the first one.")
    cached: bool = Field(description="It had been done already when this evaluation came.")
    error: RunProblem | None


class ScoreOut(BaseModel):
    value: float | None = Field(
        description="A fraction as the toolkits return it (BLEU .33, CIDEr-D .95); null where it "
        "is infinite or undefined."
    )
    family: Family
    higher_is_better: bool | None = Field(description="null where neither is better.")
    interval: tuple[float, float] | None = Field(
        description="95 %, by drawing images anew; null where none is known."
    )
    signature: str = Field(description="How it was computed.")

    @classmethod
    def of(
        cls,
        name: str,
        value: float | None,
        signature: str | Mapping[str, str],
        interval: tuple[float, float] | None = None,
    ) -> Self:
        """By a metric's name, or an alias of it; works sign all their scores alike, or each."""
        spec = catalogue.metric(name)
        return cls(
            value=finite(value),
            family=spec.family,
            higher_is_better=spec.higher_is_better,
            interval=interval,
            signature=signature if isinstance(signature, str) else signature[spec.name],
        )


class WarningOut(BaseModel):
    """Something odd that can be scored."""

    code: str
    image: str | None
    detail: str


class MetricHealth(BaseModel):
    """How far a metric can be trusted on a split; null where nothing is known."""

    human: float | None = Field(description="People's score against each other, leave one out.")
    human_of_range: float | None = Field(description="The same, as a share of the range.")
    constant: float | None = Field(description="What one sentence for all images earns.")
    constant_of_range: float | None = Field(description="The same, as a share of the range.")
    constant_of_human: float | None = Field(description="The same, as a share of people's score.")
    rare_of_human: float | None = Field(
        description="What is lost with rare words, as a share of people's score: near 0, the "
        "metric is blind to them."
    )


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


class RunOut(BaseModel):
    """A named set of works."""

    id: str
    status: EvaluationStatus


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


class ProbeRow(BaseModel):
    """One row of a probe's table: scores, and what is lost beside the table's first row."""

    probe: str
    name: str
    share: float | None = Field(description="Of tokens that were replaced.")
    scores: dict[str, float | None]
    drop: dict[str, float | None]
    sd: dict[str, float | None] = Field(description="Where scores are means.")
    signatures: dict[str, str]
    text: str = Field(description="The sentence, where the row is about one.")
    note: str
    reason: str | None = Field(description="Why there are no scores.")


class ProbesOut(RunOut):
    """Probes of a dataset: a table for each, as they are done."""

    id: ProbesId
    dataset: DatasetPinned
    works: list[WorkOut]
    probes: dict[str, list[ProbeRow]]
    health: dict[str, MetricHealth] | None = Field(description="null until all are done.")
    warnings: list[WarningOut]
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None


class ComparedOut(BaseModel):
    """One metric of two evaluations. What cannot be known is null: of one image, of what is not
    summed over images, of an infinite score.
    """

    a: float | None
    b: float | None
    difference: float | None = Field(description="a - b.")
    interval: tuple[float, float] | None = Field(
        description="95 %, by drawing images anew, the same for both."
    )
    p: float | None = Field(
        description="How often chance alone sets two such systems so far apart, in either "
        "direction: by exchanging, at random, what the two say of an image."
    )
    minimum_detectable: float | None = Field(
        description="The difference that this dataset and these two would show (p < .05) in 80 of "
        "100 cases."
    )


class MovedOut(BaseModel):
    """An image on which the two differ much: their captions, and what these score."""

    image: str
    a: str
    b: str
    scores: dict[str, "ImageCompared"]


class ImageCompared(BaseModel):
    a: float | None
    b: float | None
    difference: float | None


class ComparisonOut(RunOut):
    """Two evaluations held against each other, image by image; metrics as they are done."""

    id: ComparisonId
    a: EvaluationId
    b: EvaluationId
    dataset: DatasetPinned
    works: list[WorkOut]
    scores: dict[str, ComparedOut]
    images: list[MovedOut] = Field(
        description="Those that moved most by any of the metrics, beside what images usually move; "
        "at the end."
    )
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None


class Scored(BaseModel):
    """One metric of one evaluation."""

    evaluation: EvaluationId
    checkpoint: Digest | None = Field(description="null: captions were sent.")
    value: float
    interval: tuple[float, float] | None
    labels: dict[str, str]
    created_at: Timestamp


class Standing(Scored):
    rank: int = Field(
        description="The place of the best one whose interval this one's overlaps: ties within the "
        "interval share it."
    )
    tied: bool


class PregenOut(BaseModel):
    scores: dict[str, ScoreOut] = Field(description="By metric, as many as are there by now.")


class CaptionOut(BaseModel):
    """One caption, and its own scores by the metrics that are done by now."""

    image: str
    caption: str
    scores: dict[str, float | None]


class CocoCaption(BaseModel):
    """An entry of COCO's results format."""

    image_id: int | str = Field(description="The bundle's `id`; its `image` where it has none.")
    caption: str


class TokenOut(BaseModel):
    """One token of a reference, the last one of each caption being `<end>`."""

    word: str
    logp: float | None = Field(
        description="The natural logarithm of the probability that the model gives it; null where "
        "it gives none at all."
    )
    rank: int = Field(description="How many words the model holds for likelier.")
    top: str = Field(description="The model's own first choice.")
    top_logp: float | None


class ReferenceOut(BaseModel):
    text: str
    tokens: list[TokenOut]


class TokensOut(BaseModel):
    """The references of one image, word by word."""

    image: str
    captions: list[ReferenceOut]


class WorkEvent(BaseModel):
    """A work of the evaluation began, went on or ended."""

    name: str
    status: WorkStatus
    progress: ProgressOut
    attempts: int
    error: RunProblem | None


class ScoresEvent(BaseModel):
    """A work brought these scores."""

    scores: dict[str, float | None]
    signature: str | dict[str, str] = Field(description="Of all of them, or of each.")


class EndEvent(BaseModel):
    """The evaluation has ended: nothing comes after this."""

    status: EvaluationStatus


class SplitOut(BaseModel):
    images: int
    references: int


class EncoderOut(BaseModel):
    """What image features come from: a checkpoint's must equal its dataset's."""

    name: str
    digest: str


class FeaturesOut(BaseModel):
    encoder: EncoderOut
    size: int


class DatasetOut(BaseModel):
    """An immutable version of a dataset."""

    name: str
    version: str = Field(examples=["v1"])
    digest: Digest
    splits: dict[str, SplitOut]
    features: FeaturesOut | None = Field(description="null: for scoring captions alone.")
    created_at: Timestamp


class CachedOut(BaseModel):
    dataset: str = Field(examples=["flickr8k@v1/test"])
    columns: bool


class ConfigOut(BaseModel):
    cell: Literal["gru", "lstm"]
    size: int
    feature_size: int


class CheckpointOut(BaseModel):
    """What a checkpoint's header says."""

    digest: Digest
    bytes: int
    architecture: str = Field(examples=["merge"])
    config: ConfigOut
    parameters: int
    vocabulary_size: int
    encoder: EncoderOut
    cached: list[CachedOut] = Field(description="Splits on which it has been scored already.")
    created_at: Timestamp


class MetricOut(BaseModel):
    """A metric, and whether it can be computed here."""

    name: str
    family: Family
    higher_is_better: bool | None = Field(description="null where neither is better.")
    range: tuple[float | None, float | None] = Field(description="null: no bound.")
    definition: str
    needs: list[str]
    status: Literal["available", "unavailable"]
    reason: str | None


class HealthOut(BaseModel):
    status: Literal["ok"]


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    next: str | None = Field(
        description="The `cursor` of the next page; null where this is the last one."
    )


class EvaluationPage(Page[EvaluationOut]):
    pass


class CaptionPage(Page[CaptionOut]):
    pass


class DatasetPage(Page[DatasetOut]):
    pass


class MetricPage(Page[MetricOut]):
    pass


class ScoreList(Page[Item]):
    """One metric on one split. Only scores with one signature can be told apart by size."""

    dataset: DatasetPinned
    metric: str
    higher_is_better: bool | None
    signature: str | None = Field(description="Of all that are listed; null where there are none.")
    others: dict[str, int] = Field(
        description="How many evaluations are left out, by their signatures."
    )


class Leaderboard(ScoreList[Standing]):
    pass


class ScoreHistory(ScoreList[Scored]):
    pass
