"""What the HTTP interface is asked."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from service.contract.api.texts import (
    MAX_LABELS,
    AnyTokenizerName,
    Baseline,
    DatasetReference,
    Digest,
    GateText,
    Labels,
    PostgenName,
    PregenName,
    ScoreName,
    SearchedName,
    TokenizerName,
)
from service.contract.metrics import families, tokenizers


def _whole(value: Any) -> Any:
    """JSON tells 3 and 3.0 apart no more than JavaScript does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]


class Strict(BaseModel):
    """Nothing unknown is passed over in silence, and no text is taken for a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class CaptionIn(Strict):
    """What a captioner says of one image."""

    image: str = Field(max_length=500, description="An image of the split, by its name or its id.")
    caption: str = Field(max_length=10_000)


class Decoding(Strict):
    """How captions are decoded from a checkpoint."""

    beam: Whole = Field(default=3, ge=1, le=100, description="Its width; 1 is greedy.")
    min_words: Whole = Field(
        default=4, ge=0, le=1000, description="A caption ends no earlier. At most `max_words`."
    )
    max_words: Whole = Field(default=50, ge=1, le=1000)
    unk: bool = Field(default=False, description="Whether the word UNK may be said.")


class BertScore(Strict):
    """How `bertscore` weighs and scales."""

    idf: bool = Field(
        default=False, description="Tokens weigh by how few of the split's references have them."
    )
    baseline: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="The F-measure of unrelated sentences, as published for a model and layer: it "
        "becomes 0, and 1 remains 1.",
    )


ProbeName = Literal["human", "frequent", "rare", "swap", "random", "single"]


class ProbeOptions(Strict):
    """What is not as in the paper."""

    frequent: list[str] | Whole | None = Field(
        default=None, description="Words, or how many of the most frequent ones."
    )
    swaps: list[tuple[str, str]] | None = Field(
        default=None, description="Pairs of a word and what stands in its place."
    )
    objective: SearchedName = Field(
        default="bleu_4", description="What the single sentence shall win."
    )


class ProbesIn(Strict):
    """A split whose own references show where metrics lie."""

    dataset: DatasetReference
    probes: list[ProbeName] = Field(
        default=["human", "frequent", "rare", "swap", "random", "single"], min_length=1
    )
    metrics: list[PostgenName] = Field(default=families.usual(), min_length=1)
    tokenizer: AnyTokenizerName = Field(
        default=tokenizers.USUAL,
        description="`ptb` is for English; `regex`: words and marks in small letters; `character`: "
        "every character; `none`: tokens already, split at blanks.",
    )
    evaluation: str | None = Field(
        default=None,
        max_length=40,
        description="One whose captions are held against people's.",
    )
    captions: list[CaptionIn] | None = Field(
        default=None,
        min_length=1,
        max_length=1_000_000,
        description="Or these, one for each image.",
    )
    options: ProbeOptions = ProbeOptions()
    deadline: Whole = Field(default=3600, ge=1, le=7 * 24 * 3600)

    @model_validator(mode="after")
    def _one_system(self) -> Self:
        if self.evaluation is not None and self.captions is not None:
            raise ValueError("expected `evaluation` or `captions`, not both")
        return self


class ComparisonIn(Strict):
    """Two evaluations of the same images."""

    a: str = Field(max_length=40, description="An evaluation: the difference is this one's score…")
    b: str = Field(max_length=40, description="… less this one's.")
    metrics: list[PostgenName | PregenName] | None = Field(
        default=None,
        min_length=1,
        description="Post-gen metrics, and pre-gen metrics that begin with `sum`, `mean` or "
        "`geomean`. By default those that both evaluations show.",
    )
    deadline: Whole = Field(default=3600, ge=1, le=7 * 24 * 3600)


class EvaluationIn(Strict):
    """Either a checkpoint or captions, scored on one split of a dataset."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"required": ["checkpoint"], "properties": {"checkpoint": {"type": "string"}}},
            "then": {"properties": {"captions": {"type": "null"}}},
            "else": {
                "required": ["captions"],
                "properties": {
                    "captions": {"type": "array"},
                    "pregen": {"type": ["array", "null"], "maxItems": 0},
                },
            },
        }
    )

    checkpoint: Digest | None = None
    captions: list[CaptionIn] | None = Field(
        default=None,
        min_length=1,
        max_length=1_000_000,
        description="One for each image of the split, in any order.",
    )
    dataset: DatasetReference
    pregen: Literal["all"] | list[PregenName] | None = Field(
        default=None,
        description="Pre-gen metrics, which need a checkpoint: all of them by default.",
    )
    postgen: list[ScoreName] = Field(
        default=families.usual(),
        description="Post-gen metrics; `bleu` asks for all four, `nneval@` and the first digits "
        "of a model's SHA-256 for that model's.",
    )
    tokenizer: TokenizerName = Field(
        default=tokenizers.USUAL,
        description="For post-gen metrics. `none`: captions and references are tokens already, "
        "split at blanks.",
    )
    decoding: Decoding = Decoding()
    subset: bool = Field(default=False, description="Allows captions for a part of the split.")
    idf: Literal["dataset", "subset"] = Field(
        default="dataset",
        description="Where the document frequencies of `cider_d` and `cider` come from: from all "
        "images of the split, so that a part's score is on the whole's scale, or from the images "
        "that are answered alone. A score's signature tells which.",
    )
    bertscore: BertScore = BertScore()
    gates: list[GateText] = Field(
        default=[],
        max_length=50,
        description="What the scores must be for the verdict `passed`; metrics named here are "
        "added. `METRIC >= EXPRESSION` (or <=, >, <), linear in `baseline`; or "
        "`no_significant_drop(METRIC, ...)`: no metric of captions is worse than the baseline's, "
        "tested image by image at 5 % (two-sided), each by itself.",
        examples=[["cider_d >= baseline - 0.01", "no_significant_drop(bleu_4, meteor)"]],
    )
    baseline: Baseline | None = None
    until: Literal["done", "verdict"] = Field(
        default="done",
        description="`verdict`: the evaluation may end as soon as every gate is decided.",
    )
    trust: list[PostgenName] = Field(
        default=[],
        description="Metrics that gate although one sentence for all images has more of them than "
        "people on this split (`health`); any other such metric leaves its gate `undecided`.",
    )
    labels: Labels = Field(
        default={},
        max_length=MAX_LABELS,
        description="Any text pairs; lists are filtered by them.",
        examples=[{"branch": "main"}],
    )
    deadline: Whole = Field(
        default=3600, ge=1, le=7 * 24 * 3600, description="Seconds until what has not ended fails."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.checkpoint is None) == (self.captions is None):
            raise ValueError("expected either `checkpoint` or `captions`, and not both")
        return self
