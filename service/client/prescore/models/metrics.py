"""Metrics: the catalogue, scores, and the reliability of scores on a split."""

from typing import Annotated, Any, Literal

from pydantic import Field

from prescore.models.base import Answer, Brief, OpenEnum, PageOf, TupleOf
from prescore.models.tables import split_interval

Stage = Literal["pregen", "postgen"]
_Stage = Annotated[Stage, OpenEnum()]


class Metric(Brief, needs=("name",)):
    """A metric, and whether it can be computed here."""

    name: str
    family: _Stage
    higher_is_better: bool | None = Field(description="null where neither direction is better.")
    range: tuple[float | None, float | None] = Field(description="null: no bound.")
    definition: str
    needs: TupleOf[str]
    status: Annotated[Literal["available", "unavailable"], OpenEnum()]
    reason: str | None

    def facts(self) -> tuple[object, ...]:
        return self.name, self.status


class MetricPage(PageOf[Metric]):
    pass


class Score(Brief, needs=("value",)):
    value: float | None = Field(
        description="A fraction as the toolkits return it (BLEU .33, CIDEr-D .95); null where it "
        "is infinite or undefined."
    )
    family: _Stage
    higher_is_better: bool | None = Field(description="null where neither direction is better.")
    interval: tuple[float, float] | None = Field(
        description="95 %, by bootstrap over images; null where none is known."
    )
    signature: str = Field(description="Recipe by which it was computed.")

    def to_row(self) -> dict[str, Any]:
        """The score as a row of plain values."""
        bounds = split_interval(self.interval)
        facts = self.model_dump(exclude={"value", "interval"})
        return {"value": self.value, **bounds, **facts}

    def facts(self) -> tuple[object, ...]:
        low, high = self.interval or (None, None)
        return self.value, "" if self.interval is None else f"[{low:.4g}, {high:.4g}]"


class PregenScores(Answer, needs=("scores",)):
    scores: dict[str, Score] = Field(description="By metric, all that are computed so far.")


class MetricHealth(Answer):
    """Reliability of a metric on a split; null: not known."""

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
        description="Drop of the score when words that training captions hold fewer than 30 "
        "times are replaced in the first references, as a share of `human`: near 0, the metric "
        "does not see rare words. null where the first references hold no such word, or there is "
        "no training split: `note` or `reason` of the rows of the probe `rare` say so; and for "
        "metrics that are better the lower they are."
    )
