"""Requests and answers of the HTTP interface. Answers have no defaults: what is said is there."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from service.contract.works import EvaluationStatus, WorkStatus

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
DatasetReference = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}(@v[0-9]{1,9})?/[^/@\s]{1,100}$"),
]
Label = Annotated[str, StringConstraints(max_length=500)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CaptionIn(_Strict):
    image: str = Field(max_length=500)
    caption: str = Field(max_length=10_000)


class Decoding(_Strict):
    beam: int = Field(default=3, ge=1, le=100)
    min_words: int = Field(default=4, ge=0, le=1000)
    max_words: int = Field(default=50, ge=1, le=1000)
    unk: bool = False

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is more than max_words {self.max_words}")
        return self


class EvaluationIn(_Strict):
    """Either a checkpoint or captions, scored on one split of a dataset."""

    checkpoint: Digest | None = None
    captions: list[CaptionIn] | None = Field(default=None, min_length=1, max_length=1_000_000)
    dataset: DatasetReference
    pregen: Literal["all"] | list[str] | None = None
    postgen: list[str] = ["bleu", "rouge_l", "cider_d", "meteor"]
    tokenizer: Literal["ptb", "none"] = "ptb"
    decoding: Decoding = Decoding()
    subset: bool = False
    labels: dict[Annotated[str, StringConstraints(min_length=1, max_length=100)], Label] = Field(
        default={}, max_length=50
    )
    deadline: int = Field(default=3600, ge=1, le=7 * 24 * 3600)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.checkpoint is None) == (self.captions is None):
            raise ValueError("expected either `checkpoint` or `captions`, and not both")
        return self


class DatasetPinned(BaseModel):
    name: str
    version: str
    digest: str
    split: str


class ProgressOut(BaseModel):
    done: int
    total: int


class WorkOut(BaseModel):
    name: str
    kind: str
    status: WorkStatus
    progress: ProgressOut
    attempts: int
    seconds: float | None
    cached: bool
    error: dict[str, Any] | None


class ScoreOut(BaseModel):
    value: float | None  # null where the score is infinite or undefined: JSON has no such number
    family: Literal["pregen", "postgen"]
    higher_is_better: bool | None
    interval: tuple[float, float] | None
    signature: str


class WarningOut(BaseModel):
    code: str
    image: str | None
    detail: str


class EvaluationOut(BaseModel):
    id: str
    status: EvaluationStatus
    dataset: DatasetPinned
    checkpoint: str | None
    works: list[WorkOut]
    scores: dict[str, ScoreOut]
    warnings: list[WarningOut]
    gates: list[dict[str, Any]]
    verdict: None
    forecast: None
    estimate: None
    health: None
    error: dict[str, Any] | None
    labels: dict[str, str]
    created_at: str
    finished_at: str | None


class SplitOut(BaseModel):
    images: int
    references: int


class FeaturesOut(BaseModel):
    encoder: dict[str, str]
    size: int


class DatasetOut(BaseModel):
    name: str
    version: str
    digest: str
    splits: dict[str, SplitOut]
    features: FeaturesOut | None
    created_at: str


class CachedOut(BaseModel):
    dataset: str
    columns: bool


class CheckpointOut(BaseModel):
    digest: str
    bytes: int
    architecture: str
    config: dict[str, Any]
    parameters: int
    vocabulary_size: int
    encoder: dict[str, str]
    cached: list[CachedOut]
    created_at: str


class MetricOut(BaseModel):
    name: str
    family: str
    higher_is_better: bool | None
    range: tuple[float | None, float | None]
    definition: str
    needs: list[str]
    status: Literal["available", "unavailable"]
    reason: str | None


class Page(BaseModel):
    items: list[Any]
    next: str | None
