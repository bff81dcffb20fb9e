"""Scores, and the health of metrics: how far they can be trusted."""

from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, Field

from service.contract.formats.strict_json import finite
from service.contract.metrics import catalogue
from service.contract.metrics.catalogue import Stage


class ScoreOut(BaseModel):
    value: float | None = Field(
        description="A fraction as the toolkits return it (BLEU .33, CIDEr-D .95); null where it "
        "is infinite or undefined."
    )
    family: Stage
    higher_is_better: bool | None = Field(description="null where neither direction is better.")
    interval: tuple[float, float] | None = Field(
        description="95 %, by bootstrap over images; null where none is known."
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
        """The score of a metric (or alias); `signature` is one for all scores, or one for each."""
        spec = catalogue.metric(name)
        return cls(
            value=finite(value),
            family=spec.family,
            higher_is_better=spec.higher_is_better,
            interval=interval,
            signature=signature if isinstance(signature, str) else signature[spec.name],
        )


class MetricHealth(BaseModel):
    """How far a metric can be trusted on a split; null: not known."""

    human: float | None = Field(
        description="The score of people's captions against the other references of the image, "
        "each reference in turn: row `RvR` of the probe `human`."
    )
    human_of_range: float | None = Field(description="`human` as a share of the range.")
    constant: float | None = Field(
        description="The score of the best single sentence for all images, against all references: "
        "row `single sentence` of the probe `single`."
    )
    constant_of_range: float | None = Field(description="`constant` as a share of the range.")
    constant_of_human: float | None = Field(
        description="The sentence's score against the same references as people's captions, one of "
        "each image left out in turn, as a share of `human`: row `single sentence, as RvR` by row "
        "`RvR`. Not `constant` by `human`, since more references make most scores higher. null for "
        "metrics that are better the lower they are."
    )
    rare_of_human: float | None = Field(
        description="How far the score drops when words that training captions hold fewer than 30 "
        "times are replaced in the first references, as a share of `human`: near 0, the metric "
        "does not see rare words. null where the first references hold no such word, or there is "
        "no training split: `note` or `reason` of the rows of the probe `rare` say so; and for "
        "metrics that are better the lower they are."
    )


class PregenOut(BaseModel):
    scores: dict[str, ScoreOut] = Field(description="By metric, all that are computed so far.")


class ScoresEvent(BaseModel):
    """The event `scores`: a work has computed these scores."""

    scores: dict[str, float | None]
    signature: str | dict[str, str] = Field(
        description="One signature for all scores, or one for each."
    )
