"""Who works now, and what waits."""

from typing import Literal

from pydantic import BaseModel, Field

from service.contract.api.texts import EvaluationId, Timestamp


class WorkHeld(BaseModel):
    """A work that a worker computes now."""

    name: str = Field(
        description="As the run calls it; of what a work of the run needs, its kind.",
        examples=["columns"],
    )
    evaluation: EvaluationId | None = Field(
        description="One that waits for it; null where only runs of another kind do."
    )


class WorkerOut(BaseModel):
    name: str = Field(description="No other worker ever has it.")
    role: str = Field(examples=["inference", "metrics"])
    state: Literal["busy", "idle"]
    since: Timestamp = Field(
        description="When a busy one began its work; when an idle one connected to Redis."
    )
    work: WorkHeld | None = Field(
        description="null where it is idle, and where no unfinished run of your team waits for "
        "what it computes."
    )


class WorkersOut(BaseModel):
    items: list[WorkerOut]


class QueueOut(BaseModel):
    """Works of a queue, whichever team has asked for them."""

    name: str = Field(examples=["inference-now"])
    waiting: int = Field(description="Works that are ready to be computed.")
    running: int
    yours: int = Field(
        description="Of both, those that your team has asked for first: its quota counts their "
        "seconds."
    )
    oldest_seconds: float | None = Field(
        description="For how long the longest ready one has been ready; null where none is."
    )


class QueuesOut(BaseModel):
    items: list[QueueOut]
