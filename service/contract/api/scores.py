"""Scores, and how far a metric can be trusted."""

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


class PregenOut(BaseModel):
    scores: dict[str, ScoreOut] = Field(description="By metric, as many as are there by now.")


class ScoresEvent(BaseModel):
    """A work brought these scores."""

    scores: dict[str, float | None]
    signature: str | dict[str, str] = Field(description="Of all of them, or of each.")
