"""Request for an evaluation."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from prescore.models.choices import Idf, IfNoBaseline, Precision, Units, Until
from service.contract import limits
from service.contract.api.field_types import (
    Baseline,
    BaseName,
    DatasetReference,
    Digest,
    GateText,
    Labels,
    PostgenName,
    PregenName,
    PromptText,
    ScoreName,
    TokenizerName,
)
from service.contract.api.request_parts import (
    CaptionsInput,
    Deadline,
    Many,
    StrictModel,
    Whole,
    equals_default,
)
from service.contract.metrics import families, tokenizers


class DecodingInput(StrictModel):
    """Options of decoding captions from a checkpoint."""

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
        default=False, description="True if captions may contain the unknown word UNK."
    )
    length_power: float = Field(
        default=0.0,
        ge=0,
        le=5,
        exclude_if=equals_default(0.0),
        description="Captions are ranked by their log-probability divided by their length (END "
        "included) to this power. 0: by probability; 1: by the mean over their words.",
    )


class TokensInput(StrictModel):
    """Options of each reference token, besides its log-probability and rank."""

    top: Whole = Field(
        default=1,
        ge=1,
        le=limits.TOP_WORDS,
        exclude_if=equals_default(1),
        description="Number of the most probable words that are kept.",
    )
    entropy: bool = Field(
        default=False,
        exclude_if=equals_default(usual=False),
        description="True if the entropy of the model's next word is kept.",
    )


class BertScoreInput(StrictModel):
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


_ONE_SOURCE = (
    "expected one of `checkpoint`, `captions` and `columns`; `captions` may stand beside `columns`"
)

_OF_CHECKPOINTS = {  # fields that nothing but a checkpoint has, and why
    "base": ", an adapter: nothing else has a base model",
    "precision": ": captions alone have no probabilities",
    "tokens": ": captions alone have no probabilities",
    "prompt": ": nothing else reads a prompt",
}


class EvaluationRequest(StrictModel):
    """Score a checkpoint, or captions and columns or one of them, on one split of a dataset."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"required": ["checkpoint"], "properties": {"checkpoint": {"type": "string"}}},
            "then": {"properties": {"captions": {"type": "null"}, "columns": {"type": "null"}}},
            "else": {
                "properties": {
                    "base": {"type": "null"},
                    "precision": {"const": "fp32"},
                    "prompt": {"type": "null"},
                    "tokens": {"type": "null"},
                },
                "if": {"required": ["columns"], "properties": {"columns": {"type": "string"}}},
                "then": {"properties": {"subset": {"const": False}}},
                "else": {
                    "required": ["captions"],
                    "properties": {
                        "captions": {"type": "array"},
                        "pregen": {"type": ["array", "null"], "maxItems": 0},
                    },
                },
            },
            "anyOf": [
                {"properties": {"until": {"const": "done"}}},
                {"required": ["gates"], "properties": {"gates": {"minItems": 1}}},
            ],
        }
    )

    checkpoint: Digest | None = None
    base: BaseName | None = Field(
        default=None,
        exclude_if=equals_default(None),
        description="The base model of an adapter, by the name by which the operator has "
        "registered it; by default the one that its `adapter_config.json` names. Scores of an "
        "adapter on another base are other scores.",
        examples=["llava-1.5-7b"],
    )
    captions: CaptionsInput | None = Field(
        default=None,
        description="One for each image of the split, in any order.",
    )
    columns: Digest | None = Field(
        default=None,
        exclude_if=equals_default(None),
        description="Log-probabilities and ranks that somebody's own code computed and "
        "`PUT /v1/columns/{digest}` has stored: instead of a checkpoint, with captions or without.",
    )
    units: Units = Field(
        default="words",
        exclude_if=equals_default("words"),
        description="Units of pre-gen scores where the tokens of columns, or of a "
        "checkpoint, are pieces of words. The signature says which.",
    )
    dataset: DatasetReference
    pregen: (
        Literal["all"] | Annotated[Many[PregenName], Field(max_length=limits.METRICS)] | None
    ) = Field(
        default=None,
        description="Pre-gen metrics, which need a checkpoint or columns. By default all, or none "
        "with captions alone.",
    )
    precision: Precision = Field(
        default="fp32",
        exclude_if=equals_default("fp32"),
        description="Precision of the logits from which pre-gen scores are computed; it needs a "
        "checkpoint. `bf16` may be faster on hardware that supports it. Rank 0 is the same as in "
        "fp32; probabilities differ slightly, so that signatures contain the precision and scores "
        "of two precisions are not compared. Captions are always decoded in fp32.",
    )
    prompt: PromptText | None = Field(
        default=None,
        exclude_if=equals_default(None),
        description="Text that the model reads before a caption, in the place of the checkpoint's "
        "own; it needs a checkpoint that reads one. Captions are decoded after it too. Signatures "
        "of pre-gen scores contain the beginning of its SHA-256; those of two prompts are not "
        "compared.",
        examples=["caption en"],
    )
    tokens: TokensInput | None = Field(
        default=None,
        exclude_if=equals_default(None),
        description="Details that `/v1/evaluations/{id}/tokens/{image}` shows of each reference "
        "token in addition; it needs a checkpoint. It is computed by a task of its own, `tokens`, "
        "on which no score depends.",
        examples=[{"top": 5, "entropy": True}],
    )
    postgen: Many[ScoreName] = Field(
        default=families.list_usual_families(),
        max_length=limits.METRICS,
        description="Post-gen metrics, by default none where there are columns without captions; "
        "`bleu` stands for all four, and `nneval@` with the first "
        "digits of a model's SHA-256 for the metric of that model.",
    )
    tokenizer: TokenizerName = Field(
        default=tokenizers.USUAL,
        description="For post-gen metrics. `none`: captions and references are tokens already, "
        "split at blanks.",
    )
    decoding: DecodingInput = DecodingInput()
    subset: bool = Field(default=False, description="Allows captions for a part of the split.")
    idf: Idf = Field(
        default="dataset",
        description="The images in which `cider_d` and `cider` count document frequencies: all "
        "images of the split, so that a part's score compares with the whole split's, or only "
        "the images with a caption. A score's signature says which.",
    )
    bertscore: BertScoreInput = BertScoreInput()
    gates: Many[GateText] = Field(
        default=[],
        max_length=limits.GATES,
        description="Conditions on scores for the verdict `passed`; metrics named here are "
        "computed too. `METRIC >= EXPRESSION` (or <=, >, <), linear in `baseline`; or "
        "`not_worse(METRIC, ..., 0.01)` or `2 %`, `better(METRIC, ...)`: by the interval of the "
        "paired difference from the baseline's, of all metrics together (Holm); or "
        "`no_significant_drop(METRIC, ...)`: no metric of captions is worse than the baseline's, "
        "tested image by image at 5 % (two-sided), each metric separately.",
        examples=[["cider_d >= baseline - 0.01", "not_worse(bleu_4, meteor, 2 %)"]],
    )
    baseline: Baseline | None = None
    if_no_baseline: IfNoBaseline = Field(
        default="undecided",
        exclude_if=equals_default("undecided"),
        description="The verdict of a gate that has no baseline yet (`no_baseline`), as on the "
        "first run of a branch: `passed`, `failed`, or by default `not_comparable`.",
    )
    until: Until = Field(
        default="done",
        description="`verdict`: the evaluation may end as soon as every gate is decided.",
    )
    trust: Many[PostgenName] = Field(
        default=[],
        max_length=limits.METRICS,
        description="Metrics that gates may use although one sentence for all images scores higher "
        "than people on this split (`health`). The gate of any other such metric is `undecided`.",
    )
    labels: Labels = Field(
        default={},
        max_length=limits.LABELS,
        description="Any pairs of texts; lists can be filtered by them.",
        examples=[{"branch": "main"}],
    )
    deadline: Deadline = Field(
        default=3600, description="Seconds after which tasks that have not ended fail."
    )

    @field_validator(*_OF_CHECKPOINTS)
    @classmethod
    def _of_a_checkpoint(cls, value: Any, info: ValidationInfo) -> Any:
        name = str(info.field_name)
        has_none = info.data.get("checkpoint", ...) is None
        if has_none and value != cls.model_fields[name].get_default():
            raise ValueError(f"expected a checkpoint{_OF_CHECKPOINTS[name]}")
        return value

    @field_validator("units")
    @classmethod
    def _of_columns(cls, value: str, info: ValidationInfo) -> str:
        sources = [info.data.get(name, ...) for name in ("columns", "checkpoint")]
        if value != "words" and sources == [None, None]:
            raise ValueError("expected `columns` or a checkpoint: nothing else has pieces")
        return value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.columns is None:
            if (self.checkpoint is None) == (self.captions is None):
                raise ValueError(_ONE_SOURCE)
        elif self.checkpoint is not None:
            raise ValueError(_ONE_SOURCE)
        elif self.subset:
            raise ValueError("expected no `subset`: columns are of all images of the split")
        return self

    @property
    def has_probabilities(self) -> bool:
        """Tell whether there are pre-gen scores."""
        return self.checkpoint is not None or self.columns is not None

    @property
    def has_captions(self) -> bool:
        """Tell whether captions are sent, or decoded."""
        return self.checkpoint is not None or self.captions is not None
