"""The answer of `/v1/probes`: what metrics give to captions with a known quality."""

from pydantic import BaseModel, Field

from service.contract.api.answers import RunProblem
from service.contract.api.runs import DatasetPinned, RunOut, WarningOut, WorkOut
from service.contract.api.scores import MetricHealth
from service.contract.api.texts import ProbesId, Timestamp


class ProbeRow(BaseModel):
    """One row of a probe's table: scores, and how far they drop from the table's first row."""

    probe: str
    name: str
    share: float | None = Field(description="The share of tokens that were replaced.")
    scores: dict[str, float | None]
    drop: dict[str, float | None]
    sd: dict[str, float | None] = Field(
        description="The standard deviation, where scores are means."
    )
    signatures: dict[str, str]
    text: str = Field(description="The sentence, where the row scores a single one.")
    note: str
    reason: str | None = Field(description="Why there are no scores.")


class ProbesOut(RunOut):
    """Probes of a dataset: a table for each probe that is done."""

    id: ProbesId
    dataset: DatasetPinned
    works: list[WorkOut]
    probes: dict[str, list[ProbeRow]]
    health: dict[str, MetricHealth] | None = Field(description="null until all probes are done.")
    warnings: list[WarningOut]
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None
