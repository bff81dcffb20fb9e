"""Bodies of the HTTP interface's requests."""

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
    """3.0 as 3: JavaScript and JSON do not tell the two apart."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]


class Strict(BaseModel):
    """Base of all requests: unknown fields are refused, and a text is never read as a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class CaptionIn(Strict):
    """A captioner's caption of one image."""

    image: str = Field(max_length=500, description="An image of the split, by its name or its id.")
    caption: str = Field(max_length=10_000)


class Decoding(Strict):
    """How to decode captions from a checkpoint."""

    beam: Whole = Field(
        default=3, ge=1, le=100, description="The beam's width; 1 is greedy decoding."
    )
    min_words: Whole = Field(
        default=4,
        ge=0,
        le=1000,
        description="Words that a caption has at least; no more than `max_words`.",
    )
    max_words: Whole = Field(default=50, ge=1, le=1000)
    unk: bool = Field(
        default=False, description="Whether captions may contain the unknown word UNK."
    )


class BertScore(Strict):
    """Weights and scale of `bertscore`."""

    idf: bool = Field(
        default=False,
        description="Weight each token by its inverse document frequency in the split's "
        "references.",
    )
    baseline: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="The F-measure of unrelated sentences, as published for a model and layer. The "
        "score is rescaled so that it becomes 0, and 1 stays 1.",
    )


ProbeName = Literal["human", "frequent", "rare", "swap", "random", "single"]


class ProbeOptions(Strict):
    """Options of single probes; null: as in the paper."""

    frequent: list[str] | Whole | None = Field(
        default=None, description="Words, or how many of the most frequent words to replace."
    )
    swaps: list[tuple[str, str]] | None = Field(
        default=None, description="Pairs of a word and its replacement."
    )
    objective: SearchedName = Field(
        default="bleu_4", description="The metric that the single sentence should score highest in."
    )


class ProbesIn(Strict):
    """Probe metrics with the references of a split."""

    dataset: DatasetReference
    probes: list[ProbeName] = Field(
        default=["human", "frequent", "rare", "swap", "random", "single"], min_length=1
    )
    metrics: list[PostgenName] = Field(default=families.usual(), min_length=1)
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
    captions: list[CaptionIn] | None = Field(
        default=None,
        min_length=1,
        max_length=1_000_000,
        description="Captions to compare with people's, one for each image.",
    )
    options: ProbeOptions = ProbeOptions()
    deadline: Whole = Field(default=3600, ge=1, le=7 * 24 * 3600)

    @model_validator(mode="after")
    def _one_system(self) -> Self:
        if self.evaluation is not None and self.captions is not None:
            raise ValueError("expected `evaluation` or `captions`, not both")
        return self


class ComparisonIn(Strict):
    """Compare two evaluations of the same images."""

    a: str = Field(max_length=40, description="An evaluation; the difference is a - b.")
    b: str = Field(max_length=40, description="An evaluation of the same images.")
    metrics: list[PostgenName | PregenName] | None = Field(
        default=None,
        min_length=1,
        description="Post-gen metrics, and pre-gen metrics that begin with `sum`, `mean` or "
        "`geomean`. By default all that both evaluations have.",
    )
    deadline: Whole = Field(default=3600, ge=1, le=7 * 24 * 3600)


class EvaluationIn(Strict):
    """Score either a checkpoint or captions on one split of a dataset."""

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
        description="Pre-gen metrics, which need a checkpoint. By default all, or none with "
        "captions.",
    )
    postgen: list[ScoreName] = Field(
        default=families.usual(),
        description="Post-gen metrics; `bleu` stands for all four, and `nneval@` with the first "
        "digits of a model's SHA-256 for the metric of that model.",
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
        description="The images in which `cider_d` and `cider` count document frequencies: all "
        "images of the split, so that a part's score compares with the whole split's, or only "
        "the images with a caption. A score's signature says which.",
    )
    bertscore: BertScore = BertScore()
    gates: list[GateText] = Field(
        default=[],
        max_length=50,
        description="Conditions on scores for the verdict `passed`; metrics named here are "
        "computed too. `METRIC >= EXPRESSION` (or <=, >, <), linear in `baseline`; or "
        "`no_significant_drop(METRIC, ...)`: no metric of captions is worse than the baseline's, "
        "tested image by image at 5 % (two-sided), each metric separately.",
        examples=[["cider_d >= baseline - 0.01", "no_significant_drop(bleu_4, meteor)"]],
    )
    baseline: Baseline | None = None
    until: Literal["done", "verdict"] = Field(
        default="done",
        description="`verdict`: the evaluation may end as soon as every gate is decided.",
    )
    trust: list[PostgenName] = Field(
        default=[],
        description="Metrics that gates may use although one sentence for all images scores higher "
        "than people on this split (`health`). The gate of any other such metric is `undecided`.",
    )
    labels: Labels = Field(
        default={},
        max_length=MAX_LABELS,
        description="Any pairs of texts; lists can be filtered by them.",
        examples=[{"branch": "main"}],
    )
    deadline: Whole = Field(
        default=3600,
        ge=1,
        le=7 * 24 * 3600,
        description="Seconds after which works that have not ended fail.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.checkpoint is None) == (self.captions is None):
            raise ValueError("expected either `checkpoint` or `captions`, and not both")
        return self
