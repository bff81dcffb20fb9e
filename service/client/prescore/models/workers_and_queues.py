"""Workers and queues, and the health of the service."""

from typing import Annotated, Literal

from pydantic import Field

from prescore.models.base import Answer, Brief, OpenEnum, TupleOf
from prescore.models.identifiers import SAFE_ID, EvaluationId, Timestamp

IDLE_SECONDS = 60  # for which a task may be ready while a worker of its queue is idle


class TaskHeld(Answer, needs=("name",)):
    """A task that a worker computes now."""

    name: str = Field(
        description="As the run calls it; of what a task of the run needs, its kind.",
        examples=["columns"],
    )
    evaluation: Annotated[EvaluationId, SAFE_ID] | None = Field(
        description="One that waits for it; null where only runs of another kind do."
    )


class Worker(Brief, needs=("name",)):
    name: str = Field(description="No other worker ever has it.")
    role: str = Field(examples=["inference", "metrics"])
    state: Annotated[Literal["busy", "idle", "not_answering"], OpenEnum()] = Field(
        description=f"`not_answering`: it has a task and has not been heard of for longer than its "
        f"lease lasts (12 s), or it is idle while a task of its queues has been ready for more "
        f"than {IDLE_SECONDS} s."
    )
    since: Timestamp = Field(
        description="Time at which one with a task began it, or another one connected to Redis."
    )
    task: TaskHeld | None = Field(
        description="null where it has none, and where no unfinished run of your team waits for "
        "what it computes."
    )

    def facts(self) -> tuple[object, ...]:
        return self.name, self.state, self.task.name if self.task else ""


class WorkerList(Answer, needs=("items",)):
    items: TupleOf[Worker]


class Queue(Brief, needs=("name", "waiting")):
    """Tasks of a queue, whichever team has asked for them."""

    name: str = Field(examples=["inference-now"])
    waiting: int = Field(description="Tasks that are ready to be computed.")
    running: int
    yours: int = Field(
        description="Of both, those that your team has asked for first: its quota counts their "
        "seconds."
    )
    oldest_seconds: float | None = Field(
        description="For how long the longest ready one has been ready; null where none is."
    )

    def facts(self) -> tuple[object, ...]:
        return self.name, f"waiting={self.waiting}", f"running={self.running}"


class QueueList(Answer, needs=("items",)):
    items: TupleOf[Queue]


class Liveness(Answer):
    status: Annotated[Literal["ok"], OpenEnum()]


class Readiness(Liveness):
    workers: dict[str, int] = Field(
        description="Number of workers by role; empty while Redis does not answer."
    )
    findings: TupleOf[str] = Field(
        description="Faults with which requests are accepted: no Redis, no worker."
    )
