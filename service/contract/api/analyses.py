"""Requests for analyses of a split beside evaluations: comparisons, probes, studies."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from prescore.models.studies import StudyIdf
from service.contract import limits
from service.contract.api.field_types import (
    AnyTokenizerName,
    DatasetReference,
    ProbedName,
    ScoreName,
    SearchedName,
    SummedName,
)
from service.contract.api.request_parts import (
    CaptionsInput,
    Deadline,
    Many,
    Pair,
    StrictModel,
    Whole,
    Word,
    build_absent_schema,
)
from service.contract.metrics import families, tokenizers

ProbeName = Literal["human", "frequent", "rare", "swap", "random", "single"]


class ComparisonRequest(StrictModel):
    """Compare two evaluations of the same images."""

    a: str = Field(max_length=40, description="An evaluation; the difference is a - b.")
    b: str = Field(max_length=40, description="An evaluation of the same images.")
    metrics: Many[ScoreName | SummedName] | None = Field(
        default=None,
        min_length=1,
        max_length=limits.METRICS,
        description="Post-gen metrics, and pre-gen metrics that begin with `sum`, `mean` or "
        "`geomean`. By default all that both evaluations have.",
    )
    deadline: Deadline = 3600


class ProbeOptions(StrictModel):
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


class ProbesRequest(StrictModel):
    """Probe metrics with the references of a split."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [build_absent_schema("evaluation"), build_absent_schema("captions")]
        }
    )

    dataset: DatasetReference
    probes: Many[ProbeName] = Field(
        default=["human", "frequent", "rare", "swap", "random", "single"],
        min_length=1,
        max_length=limits.METRICS,
    )
    metrics: Many[ProbedName] = Field(
        default=families.list_usual_families(), min_length=1, max_length=limits.METRICS
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
    captions: CaptionsInput | None = Field(
        default=None,
        description="Captions to compare with people's, one for each image.",
    )
    options: ProbeOptions = ProbeOptions()
    deadline: Deadline = 3600

    @model_validator(mode="after")
    def _one_system(self) -> Self:
        if self.evaluation is not None and self.captions is not None:
            raise ValueError("expected `evaluation` or `captions`, not both")
        return self


class StudyRequest(StrictModel):
    """Study the 200 latest finished evaluations of checkpoints on a split."""

    dataset: DatasetReference
    idf: StudyIdf = Field(
        default="dataset",
        description="Images in which CIDEr counts document frequencies: of the split, or of a "
        "stratum.",
    )
    limit: Whole = Field(
        default=20,
        ge=0,
        le=1000,
        description="Number of pre-gen metrics to show for each post-gen metric, besides the "
        "headline ones.",
    )
    deadline: Deadline = 3600
