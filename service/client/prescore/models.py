"""The service's answers and the choices in requests, as types; unknown fields are ignored."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    field_validator,
)

# Checked, since programs make paths, URLs and commands of them.
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]
ENDED = frozenset({"succeeded", "failed", "canceled"})


class Tokenizer(StrEnum):
    """How captions and references are split into words; `none`: they are tokens already."""

    PTB = "ptb"
    NONE = "none"


class Precision(StrEnum):
    """Precision of the logits from which pre-gen scores are computed."""

    FP32 = "fp32"
    BF16 = "bf16"


class Idf(StrEnum):
    """CIDEr's document frequencies: of the whole split, or of the images that have a caption."""

    DATASET = "dataset"
    SUBSET = "subset"


class Until(StrEnum):
    """When an evaluation with gates ends: with its last work, or when all gates are decided."""

    DONE = "done"
    VERDICT = "verdict"


class Answer(BaseModel):
    """Base of all answers. A status stays text: a new status must not break an old client."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)


class FieldError(Answer):
    pointer: str = ""  # a JSON pointer into the request
    detail: str = ""


class Problem(Answer):
    """RFC 9457: why a request was refused, or why a run failed."""

    type: str = "about:blank"
    title: str = ""
    status: int | None = None
    code: str = ""
    detail: str = ""
    request_id: str = ""
    errors: tuple[FieldError, ...] = ()


class Progress(Answer):
    done: int
    total: int | None = None


class Work(Answer):
    name: str
    kind: str = ""
    status: str
    progress: Progress | None = None
    attempts: int = 0
    seconds: float | None = None
    cached: bool = False
    error: Problem | None = None

    @field_validator("error", mode="before")
    @classmethod
    def _sentence(cls, value: Any) -> Any:
        return {"detail": value} if isinstance(value, str) else value


class Score(Answer):
    """`value` is a fraction as the toolkits return it (BLEU .33), None where it is not a number."""

    value: float | None
    family: str = ""
    higher_is_better: bool | None = None
    interval: tuple[float, float] | None = None
    signature: str | None = None


class Pinned(Answer):
    """The version of a dataset and the split that an evaluation uses."""

    name: str
    version: str = ""
    digest: str = ""
    split: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}/{self.split}"


class Oddity(Answer):
    """A warning: something odd in the input that can be scored, but should be looked at."""

    code: str = ""
    image: str | None = None
    detail: str = ""


class GateScore(Answer):
    """One metric of a gate: its value and its baseline; `difference` is value - baseline."""

    value: float | None = None
    interval: tuple[float, float] | None = None
    baseline: float | None = None
    evaluation: str | None = None  # the id of the baseline's evaluation
    difference: float | None = None
    p: float | None = None
    minimum_detectable: float | None = None


class Gate(Answer):
    gate: str
    verdict: str | None = None
    detail: str | None = None
    no_baseline: bool = False  # nothing has been scored yet that could be its baseline
    scores: dict[str, GateScore] = Field(default_factory=dict)


class Run(Answer):
    """A run: a named set of works, with a status."""

    id: Id
    status: str
    dataset: Pinned
    works: tuple[Work, ...] = ()
    error: Problem | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def ended(self) -> bool:
        return self.status in ENDED


class Evaluation(Run):
    checkpoint: str | None = None
    scores: dict[str, Score] = Field(default_factory=dict)
    warnings: tuple[Oddity, ...] = ()
    gates: tuple[Gate, ...] = ()
    verdict: str | None = None
    forecast: Any = None
    estimate: Any = None
    health: Any = None
    labels: dict[str, str] = Field(default_factory=dict)


class Compared(Answer):
    """One metric of two evaluations; `difference` is a - b. None: not known, or infinite."""

    a: float | None
    b: float | None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    minimum_detectable: float | None = None


class Moved(Answer):
    """An image on which two evaluations differ much; `a` and `b` are their captions."""

    image: str
    a: str
    b: str
    scores: dict[str, Compared] = Field(default_factory=dict)


class Comparison(Run):
    a: str
    b: str
    scores: dict[str, Compared] = Field(default_factory=dict)
    images: tuple[Moved, ...] = ()


class PregenScores(Answer):
    scores: dict[str, Score]


class Caption(Answer):
    image: str
    caption: str
    scores: dict[str, float | None] = Field(default_factory=dict)


class CocoResults(RootModel[list[dict[str, Any]]]):
    pass


class TopWord(Answer):
    word: str
    logp: float | None = None


class Token(Answer):
    word: str
    logp: float | None = None  # None: its probability is 0
    rank: int | None = None
    top: str | tuple[str, ...] | None = None
    top_logp: float | tuple[float, ...] | None = None
    tops: tuple[TopWord, ...] = ()  # the likeliest words, `top` first: as many as were asked for
    entropy: float | None = None  # in nats; None: not asked for


class TokenizedCaption(Answer):
    text: str
    tokens: tuple[Token, ...] = ()


class Tokens(Answer):
    image: str
    captions: tuple[TokenizedCaption, ...] = ()


class Encoder(Answer):
    name: str = ""
    digest: str = ""


class Cached(Answer):
    dataset: str
    columns: bool = False


class Checkpoint(Answer):
    digest: Digest
    bytes: int | None = None
    architecture: str = ""
    config: dict[str, Any] = Field(default_factory=dict)
    parameters: int | None = None
    vocabulary_size: int | None = None
    encoder: Encoder | None = None
    cached: tuple[Cached, ...] = ()
    created_at: datetime | None = None


class Split(Answer):
    images: int
    references: int = 0


class Features(Answer):
    encoder: Encoder | None = None
    size: int | None = None


class Dataset(Answer):
    name: str
    version: str
    digest: Digest = ""
    splits: dict[str, Split] = Field(default_factory=dict)
    features: Features | None = None
    created_at: datetime | None = None

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class Metric(Answer):
    """A metric that the service knows; `reason` says why it is not available."""

    name: str
    family: str = ""
    higher_is_better: bool | None = None
    range: Any = None
    definition: str = ""
    needs: tuple[str, ...] = ()
    status: str = ""
    reason: str | None = None


class Scored(Answer):
    """One metric of one evaluation."""

    evaluation: str
    checkpoint: str | None = None
    value: float
    interval: tuple[float, float] | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    created_at: datetime | None = None


class Standing(Scored):
    """A leaderboard's row; runs share a `rank` when their intervals overlap its best run's."""

    rank: int
    tied: bool = False


class Event(Answer):
    """A run's event: `work`, `scores` or `end`. Give `id` as `last_event_id` to resume after it."""

    id: str = ""
    name: str
    data: Any = None
