"""Metrics, leaderboards and histories."""

from datetime import datetime
from typing import Any

from pydantic import Field

from prescore.models.base import Answer, Brief
from prescore.models.runs import Pinned


class Metric(Brief):
    """A metric that the service knows; `reason` says why it is not available."""

    name: str
    family: str = ""
    higher_is_better: bool | None = None
    range: Any = None
    definition: str = ""
    needs: tuple[str, ...] = ()
    status: str = ""
    reason: str | None = None

    def facts(self) -> tuple[object, ...]:
        return self.name, self.status


class ScoreBeside(Answer):
    """Another metric of an evaluation, or of `evaluation`, which has the same checkpoint."""

    evaluation: str
    value: float
    interval: tuple[float, float] | None = None


class Scored(Brief):
    """One metric of one evaluation."""

    evaluation: str
    checkpoint: str | None = None
    value: float
    interval: tuple[float, float] | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    scores: dict[str, ScoreBeside] = Field(default_factory=dict)  # of other metrics
    created_at: datetime | None = None

    def facts(self) -> tuple[object, ...]:
        return self.evaluation, f"{self.value:.4g}"


class BoardHead(Answer):
    """What a leaderboard or a history says before its rows."""

    dataset: Pinned
    metric: str
    higher_is_better: bool | None = None
    signature: str | None = None  # of all rows
    others: dict[str, int] = Field(default_factory=dict)  # runs left out, by their signature
    none_because: str | None = None  # why there are no rows


class Standing(Scored):
    """A leaderboard's row; runs share a `rank` that do not differ from its best run at 5 %."""

    rank: int
    tied: bool = False
    ranked_by: str = ""

    def facts(self) -> tuple[object, ...]:
        return f"{'=' if self.tied else ''}{self.rank}", *super().facts()
