"""Probes: what metrics give to captions with a known quality. The request and the answer."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from service.contract import limits
from service.contract.api.answers import RunProblem
from service.contract.api.captions import CaptionsIn
from service.contract.api.runs import DatasetPinned, RunOut, WarningOut, WorkOut
from service.contract.api.scores import MetricHealth
from service.contract.api.strict import Many, Pair, Strict, Whole, Word, absent
from service.contract.api.texts import (
    AnyTokenizerName,
    DatasetReference,
    ProbedName,
    ProbesId,
    SearchedName,
    Timestamp,
)
from service.contract.metrics import families, tokenizers

ProbeName = Literal["human", "frequent", "rare", "swap", "random", "single"]


class ProbeOptions(Strict):
    """Options of single probes; null: as in the paper."""

    frequent: Annotated[Many[Word], Field(max_length=limits.WORDS)] | Whole | None = Field(
        default=None, description="Words, or how many of the most frequent words to replace."
    )
    swaps: Many[Pair] | None = Field(
        default=None,
        max_length=limits.WORDS,
        description="Pairs of a word and its replacement.",
    )
    objective: SearchedName = Field(
        default="bleu_4", description="The metric that the single sentence should score highest in."
    )


class ProbesIn(Strict):
    """Probe metrics with the references of a split."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [absent("evaluation"), absent("captions")]}
    )

    dataset: DatasetReference
    probes: Many[ProbeName] = Field(
        default=["human", "frequent", "rare", "swap", "random", "single"],
        min_length=1,
        max_length=limits.METRICS,
    )
    metrics: Many[ProbedName] = Field(
        default=families.usual(), min_length=1, max_length=limits.METRICS
    )
    tokenizer: AnyTokenizerName = Field(
        default=tokenizers.USUAL,
        description="`ptb`: for English; `regex`: words and punctuation in lower case; "
        "`character`: every character; `none`: the text is tokens already, split at blanks.",
    )
    evaluation: str | None = Field(
        default=None,
        max_length=40,
        description="An evaluation whose captions are compared with people's.",
    )
    captions: CaptionsIn | None = Field(
        default=None,
        description="Captions to compare with people's, one for each image.",
    )
    options: ProbeOptions = ProbeOptions()
    deadline: Whole = Field(default=3600, ge=1, le=7 * 24 * 3600)

    @model_validator(mode="after")
    def _one_system(self) -> Self:
        if self.evaluation is not None and self.captions is not None:
            raise ValueError("expected `evaluation` or `captions`, not both")
        return self


class ProbeRow(BaseModel):
    """One row of a probe's table: scores, and how far they drop from the table's first row."""

    probe: str
    name: str
    share: float | None = Field(description="The share of tokens that were replaced.")
    scores: dict[str, float | None]
    drop: dict[str, float | None]
    sd: dict[str, float | None] = Field(
        description="The standard deviation, where scores are means."
    )
    signatures: dict[str, str]
    text: str = Field(description="The sentence, where the row scores a single one.")
    note: str
    reason: str | None = Field(description="Why there are no scores.")


class ProbesOut(RunOut):
    """Probes of a dataset: a table for each probe that is done."""

    id: ProbesId
    dataset: DatasetPinned
    works: list[WorkOut]
    probes: dict[str, list[ProbeRow]]
    health: dict[str, MetricHealth] | None = Field(description="null until all probes are done.")
    warnings: list[WarningOut]
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None
