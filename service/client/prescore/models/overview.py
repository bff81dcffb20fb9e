"""What is seen of a team's labels, and of the service's queues and workers."""

from datetime import datetime

from pydantic import Field

from prescore.models.base import Answer, Brief, Id


class LabelValue(Answer):
    """`evaluations`: how many of the latest ones have it."""

    value: str
    evaluations: int = 0
    latest: datetime | None = None


class Label(Brief):
    """A label's name and its values, the latest evaluation's first."""

    name: str
    values: tuple[LabelValue, ...] = ()
    more_values: bool = False

    def facts(self) -> tuple[object, ...]:
        return self.name, *(one.value for one in self.values[:3])


class Labels(Answer):
    items: tuple[Label, ...] = Field(max_length=1000)
    more_names: bool = False


class Queue(Brief):
    """Works that are ready and that run, and how many of both your team has asked for first."""

    name: str
    waiting: int
    running: int = 0
    yours: int = 0
    oldest_seconds: float | None = None

    def facts(self) -> tuple[object, ...]:
        return self.name, f"waiting={self.waiting}", f"running={self.running}"


class Queues(Answer):
    items: tuple[Queue, ...] = Field(max_length=1000)


class WorkHeld(Answer):
    name: str
    evaluation: Id | None = None


class Worker(Brief):
    """`work` is None where it is idle, and where your team does not wait for what it computes."""

    name: str
    role: str = ""
    state: str = ""
    since: datetime | None = None
    work: WorkHeld | None = None

    def facts(self) -> tuple[object, ...]:
        return self.name, self.state, self.work.name if self.work else ""


class Workers(Answer):
    items: tuple[Worker, ...] = Field(max_length=10_000)
