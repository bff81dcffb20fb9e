"""The request for the training of a learned metric."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from service.contract import limits
from service.contract.api.field_types import DatasetReference, FeatureName, PlainName, TokenizerName
from service.contract.api.request_parts import (
    Caption,
    CaptionsInput,
    Deadline,
    Many,
    StrictModel,
    Whole,
    build_absent_schema,
    equals_default,
)
from service.contract.metrics import families, tokenizers
from service.contract.metrics.objectives import OBJECTIVES, USUAL

Finite = Annotated[float, Field(allow_inf_nan=False)]


class CaptionerInput(StrictModel):
    """A captioner whose captions the metric learns to tell from people's."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [build_absent_schema("evaluation"), build_absent_schema("captions")],
        }
    )

    name: PlainName = Field(min_length=1, max_length=100)
    evaluation: str | None = Field(
        default=None,
        max_length=40,
        description="An evaluation on the same split, whose captions are used.",
    )
    captions: CaptionsInput | None = Field(
        default=None,
        description="The captions themselves, one for each image.",
    )
    trained_on: DatasetReference | None = Field(
        default=None,
        description="The split that the captioner was trained on: its captions of these photos are "
        "refused; null where it is not known.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.evaluation is None) == (self.captions is None):
            raise ValueError("expected either `evaluation` or `captions`, and not both")
        return self


class RatingInput(StrictModel):
    """A caption with people's ratings."""

    image: str = Field(max_length=limits.IMAGE, description="The name of the image.")
    candidate: Caption
    references: Many[Caption] = Field(min_length=1, max_length=limits.REFERENCES)
    ratings: Many[Finite] = Field(
        min_length=1, max_length=limits.RATINGS, description="One rating of each rater."
    )


class PreferenceInput(StrictModel):
    """Two captions of an image, of which people prefer one."""

    image: str | None = Field(
        default=None, max_length=limits.IMAGE, description="The name of the image."
    )
    references: Many[Caption] = Field(min_length=1, max_length=limits.REFERENCES)
    a: Caption
    b: Caption
    preferred: Literal["a", "b"]


class JudgementsInput(StrictModel):
    """Judgements of captions: of 40 images at least, a quarter of which tests the metric."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"properties": {name: {"minItems": 1}}, "required": [name]}
                for name in ("rated", "pairs")
            ]
        }
    )

    rated: Many[RatingInput] = Field(
        default=[],
        max_length=limits.CAPTIONS,
        description="Of two captions of one image, that with the higher mean rating is preferred.",
    )
    pairs: Many[PreferenceInput] = Field(default=[], max_length=limits.CAPTIONS)

    @model_validator(mode="after")
    def _any(self) -> Self:
        if not self.rated and not self.pairs:
            raise ValueError("expected judgements in `rated` or in `pairs`, found none")
        return self


def _of_objectives() -> dict[str, Any]:
    """The JSON schema of what each objective takes, and what it needs."""
    fields = {field for row in OBJECTIVES.values() for field in row.takes}
    return {
        "oneOf": [
            {
                "properties": {
                    "objective": {"const": name},
                    **{field: {"type": "null"} for field in sorted(fields - set(row.takes))},
                    **{field: {"not": {"type": "null"}} for field in row.needs},
                },
                "required": [*(() if name == USUAL else ("objective",)), *row.needs],
            }
            for name, row in OBJECTIVES.items()
        ]
    }


class TrainingRequest(StrictModel):
    """Train a learned metric. `people` learns who wrote a caption, from people's captions of a
    split and captioners' captions; `contrast` puts people's captions above wrong ones that are made
    of them; `judged` puts what people prefer above what they do not.
    """

    model_config = ConfigDict(json_schema_extra=lambda schema: schema.update(_of_objectives()))

    dataset: DatasetReference
    further: Many[DatasetReference] = Field(
        default=[],
        max_length=limits.DATASETS,
        exclude_if=equals_default([]),
        description="Splits whose references count too: in document frequencies and, for "
        "`contrast` and `judged`, in all that is learned.",
    )
    objective: Literal["people", "contrast", "judged"] = Field(
        default="people",
        exclude_if=equals_default("people"),
        description="`people` makes a model of nneval, `contrast` and `judged` make one of accord.",
    )
    captioners: Many[CaptionerInput] | None = Field(
        default=None,
        min_length=3,
        max_length=limits.CAPTIONERS,
        exclude_if=equals_default(None),
        description="For `people`, which needs them. At least three must have a caption of every "
        "image of `dataset`.",
    )
    judgements: JudgementsInput | None = Field(
        default=None, exclude_if=equals_default(None), description="For `judged`, which needs them."
    )
    stopping: Many[RatingInput] | None = Field(
        default=None,
        min_length=1,
        max_length=limits.CAPTIONS,
        description="For `people`. One half of the rated images decides when the training stops, "
        "the other half tests the metric. null: parts of the split do both, by how well people and "
        "captioners are told apart.",
    )
    leave_out_rated: bool = Field(
        default=False,
        description="For `people`. Leave rated photos out of the training; else they are refused.",
    )
    features: Many[FeatureName] = Field(
        default=families.list_usual_features(),
        min_length=1,
        max_length=limits.FEATURES,
        description="For `people`: the metrics that its model is made of.",
    )
    learning_rate: Finite | None = Field(
        default=None,
        ge=0,
        description="For `people`. null: 0.001 (0.25 in the paper).",
    )
    beta: Finite | None = Field(
        default=None,
        ge=0,
        description="The weight of the L2 penalty; null: 0.01 for the network, 0.1 for the weights "
        "of accord.",
    )
    epochs: Whole = Field(
        default=500,
        ge=1,
        le=10_000,
        description="For `people`. The largest number of epochs.",
    )
    seed: Whole = Field(default=0, ge=0, lt=2**32, description="The seed of all random numbers.")
    tokenizer: TokenizerName = Field(
        default=tokenizers.USUAL,
        description="Evaluations with this metric must use the same tokenizer.",
    )
    deadline: Deadline = 3600

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        _check_once("captioners", [each.name for each in self.captioners or ()])
        _check_once("splits", [self.dataset, *self.further])
        _check_once("features", self.features)
        return self


def _check_once(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected different {what}, found {twice!r:.100} twice")
