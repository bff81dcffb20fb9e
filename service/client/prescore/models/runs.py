"""Runs of every kind: their dataset, tasks, warnings and events."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from prescore.models.base import Answer, Brief, Linked, OpenEnum, RunProblem, TupleOf
from prescore.models.identifiers import Id, Timestamp

TaskStatus = Literal["waiting", "ready", "running", "done", "failed", "canceled", "unavailable"]
RunStatus = Literal["queued", "running", "succeeded", "failed", "canceled"]
StatusFilter = Literal[RunStatus, "unfinished"]  # of lists; `unfinished`: queued or running
UNFINISHED: tuple[RunStatus, ...] = ("queued", "running")
ENDED: frozenset[RunStatus] = frozenset({"succeeded", "failed", "canceled"})
_TaskStatus = Annotated[TaskStatus, OpenEnum()]
_RunStatus = Annotated[RunStatus, OpenEnum()]


class DatasetPinned(Brief, needs=("name",)):
    """One split of one version of a dataset."""

    name: str
    version: str
    digest: str
    split: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}/{self.split}"

    def facts(self) -> tuple[object, ...]:
        return (str(self),)


class Progress(Answer):
    """Progress of a task. `total` is 0 until something is counted, and stays 0 for short tasks."""

    done: int
    total: int


class RunTask(Answer, needs=("name", "status")):
    """One computation of a run."""

    name: str = Field(examples=["columns"])
    kind: str
    status: _TaskStatus
    progress: Progress
    attempts: int
    attempts_allowed: int | None = Field(
        description="Number of attempts after which it fails for good, if each one from now on "
        "ends with an error; attempts that were ended from outside do not count. null where it has "
        "ended, and of a task in shards."
    )
    retry_at: Timestamp | None = Field(
        description="Time from which a task whose last attempt ended badly is tried again, by the "
        "next free worker; null for all others."
    )
    started_at: Timestamp | None = Field(
        description="Time at which the last attempt began; null before the first one."
    )
    seconds: float | None = Field(
        description="Seconds of the last attempt, while it runs of when the run last changed; null "
        "before the first one."
    )
    seconds_left: float | None = Field(
        description="While it runs, an estimate from its progress and the seconds so far, of when "
        "the run last changed; null where nothing is counted yet."
    )
    cached: bool = Field(description="The task was done before this run was submitted.")
    error: RunProblem | None

    @field_validator("error", mode="before")
    @classmethod
    def _sentence(cls, value: Any) -> Any:
        return {"detail": value} if isinstance(value, str) else value


class Oddity(Answer):
    """Something odd in the input, which can still be scored; `unavailable`: a metric that was asked
    for and cannot be computed here, with the reason; `undecoded`: how many pictures cannot be
    decoded, then the first of these with the reason.
    """

    code: str
    image: str | None
    detail: str


class Run(Linked, needs=("id", "status", "dataset")):
    """A run: a named set of tasks."""

    PLACE: ClassVar[str]

    id: Id
    status: _RunStatus
    note: str | None = Field(description="Note about the run.")
    if TYPE_CHECKING:  # each kind of run has them, in the order of its answer
        dataset: DatasetPinned
        tasks: TupleOf[RunTask]
        error: RunProblem | None
        created_at: Timestamp
        finished_at: Timestamp | None

    @property
    def was_there(self) -> bool:
        """True where an earlier request with the same idempotency key began it: in the answer to
        `submit` alone.
        """
        return self._origin.replayed

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    def place(self) -> str:
        return f"{self.PLACE}/{self.id}"

    def facts(self) -> tuple[object, ...]:
        return self.id, self.status, self.dataset


class TaskEvent(Answer):
    """The event `task`: a task began, made progress or ended."""

    name: str
    status: _TaskStatus
    progress: Progress
    attempts: int
    error: RunProblem | None


class ScoresEvent(Answer):
    """The event `scores`: a task has computed these scores."""

    scores: dict[str, float | None]
    signature: str | dict[str, str] = Field(
        description="One signature for all scores, or one for each."
    )


class RunEvent(Answer):
    """The event `run`: a run of the team is new, or has changed."""

    kind: str = Field(description="`evaluation`, `comparison`, `probes`, `training` or `study`.")
    id: str
    version: int = Field(description="Grows with each change.")
    status: _RunStatus


class EndEvent(Answer):
    """The event `end`: the evaluation has ended; no event follows."""

    status: _RunStatus


class Event(Answer, needs=("name",)):
    """A run's event: `task`, `scores` or `end`. Give `id` as `last_event_id` to resume after it."""

    id: str = ""
    name: str
    data: Any = None
