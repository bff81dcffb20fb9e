"""The catalogue of metrics, and the answer of `/livez` and `/readyz`."""

from typing import Literal

from pydantic import BaseModel, Field

from service.contract.api.answers import Page
from service.contract.metrics.catalogue import Stage


class MetricOut(BaseModel):
    """A metric, and whether it can be computed here."""

    name: str
    family: Stage
    higher_is_better: bool | None = Field(description="null where neither direction is better.")
    range: tuple[float | None, float | None] = Field(description="null: no bound.")
    definition: str
    needs: list[str]
    status: Literal["available", "unavailable"]
    reason: str | None


class HealthOut(BaseModel):
    status: Literal["ok"]


class ReadyOut(HealthOut):
    workers: dict[str, int] = Field(
        description="How many workers of each role are there; empty while Redis does not answer."
    )
    findings: list[str] = Field(
        description="Faults that keep no request from being accepted, such as Redis being away."
    )


class MetricPage(Page[MetricOut]):
    pass
