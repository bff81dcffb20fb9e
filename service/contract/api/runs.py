"""Parts of every run's answer: dataset, works, warnings, events."""

from pydantic import BaseModel, Field

from service.contract.api.answers import RunProblem
from service.contract.plan.works import RunStatus, WorkStatus


class DatasetPinned(BaseModel):
    """One split of one version of a dataset."""

    name: str
    version: str
    digest: str
    split: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}/{self.split}"


class ProgressOut(BaseModel):
    """`total` is 0 until something has been counted, and stays so for works that are short."""

    done: int
    total: int


class WorkOut(BaseModel):
    """One computation of a run."""

    name: str = Field(examples=["columns"])
    kind: str
    status: WorkStatus
    progress: ProgressOut
    attempts: int
    seconds: float | None = Field(
        description="Seconds of the last attempt; null before the first one."
    )
    cached: bool = Field(description="The work was done before this run was submitted.")
    error: RunProblem | None


class WarningOut(BaseModel):
    """Something odd in the input, which can still be scored; `unavailable`: a metric that was asked
    for and cannot be computed here, with the reason; `undecoded`: how many pictures cannot be
    decoded, then the first of these with the reason.
    """

    code: str
    image: str | None
    detail: str


class RunOut(BaseModel):
    """A run: a named set of works."""

    id: str
    status: RunStatus
    note: str | None = Field(description="What somebody has noted about it.")


class WorkEvent(BaseModel):
    """The event `work`: a work began, made progress or ended."""

    name: str
    status: WorkStatus
    progress: ProgressOut
    attempts: int
    error: RunProblem | None


class RunEvent(BaseModel):
    """The event `run`: a run of the team is new, or has changed."""

    kind: str = Field(description="`evaluation`, `comparison`, `probes`, `training` or `study`.")
    id: str
    version: int = Field(description="Grows with each change.")
    status: RunStatus


class EndEvent(BaseModel):
    """The event `end`: the evaluation has ended; no event follows."""

    status: RunStatus
