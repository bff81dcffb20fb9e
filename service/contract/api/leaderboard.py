"""One metric over a split's evaluations."""

from pydantic import BaseModel, Field

from service.contract.api.pages import Item, Page
from service.contract.api.runs import DatasetPinned
from service.contract.api.texts import Digest, EvaluationId, Timestamp


class Scored(BaseModel):
    """One metric of one evaluation."""

    evaluation: EvaluationId
    checkpoint: Digest | None = Field(description="null: captions were sent.")
    value: float
    interval: tuple[float, float] | None
    labels: dict[str, str]
    created_at: Timestamp


class Standing(Scored):
    rank: int = Field(
        description="The place of the best one whose interval this one's overlaps: ties within the "
        "interval share it."
    )
    tied: bool


class ScoreList(Page[Item]):
    """One metric on one split. Only scores with one signature can be told apart by size."""

    dataset: DatasetPinned
    metric: str
    higher_is_better: bool | None
    signature: str | None = Field(description="Of all that are listed; null where there are none.")
    others: dict[str, int] = Field(
        description="How many evaluations are left out, by their signatures."
    )


class Leaderboard(ScoreList[Standing]):
    pass


class ScoreHistory(ScoreList[Scored]):
    pass
