"""What every run shows: its dataset, its works, its warnings."""

from pydantic import BaseModel, Field

from service.contract.api.problems import RunProblem
from service.contract.plan.works import RunStatus, WorkStatus


class DatasetPinned(BaseModel):
    """One split of one version."""

    name: str
    version: str
    digest: str
    split: str


class ProgressOut(BaseModel):
    done: int
    total: int


class WorkOut(BaseModel):
    """One computation of an evaluation."""

    name: str = Field(examples=["columns"])
    kind: str
    status: WorkStatus
    progress: ProgressOut
    attempts: int
    seconds: float | None = Field(description="Of its last attempt; null before the first one.")
    cached: bool = Field(description="It had been done already when this evaluation came.")
    error: RunProblem | None


class WarningOut(BaseModel):
    """Something odd that can be scored."""

    code: str
    image: str | None
    detail: str


class RunOut(BaseModel):
    """A named set of works."""

    id: str
    status: RunStatus


class WorkEvent(BaseModel):
    """A work of the evaluation began, went on or ended."""

    name: str
    status: WorkStatus
    progress: ProgressOut
    attempts: int
    error: RunProblem | None


class EndEvent(BaseModel):
    """The evaluation has ended: nothing comes after this."""

    status: RunStatus
