"""What all runs have: works, a dataset, a status."""

from datetime import datetime
from typing import Any, ClassVar

from pydantic import field_validator

from prescore.models.base import ENDED, Answer, Brief, Id, Linked, Problem


class Progress(Answer):
    done: int
    total: int | None = None


class Work(Answer):
    name: str
    kind: str = ""
    status: str
    progress: Progress | None = None
    attempts: int = 0
    seconds: float | None = None
    cached: bool = False
    error: Problem | None = None

    @field_validator("error", mode="before")
    @classmethod
    def _sentence(cls, value: Any) -> Any:
        return {"detail": value} if isinstance(value, str) else value


class Pinned(Brief):
    """The version of a dataset and the split that an evaluation uses."""

    name: str
    version: str = ""
    digest: str = ""
    split: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}/{self.split}"

    def facts(self) -> tuple[object, ...]:
        return (str(self),)


class Oddity(Answer):
    """A warning: something odd in the input that can be scored, but should be looked at."""

    code: str = ""
    image: str | None = None
    detail: str = ""


class Run(Linked):
    """A run: a named set of works, with a status."""

    PLACE: ClassVar[str]

    id: Id
    status: str
    dataset: Pinned
    note: str | None = None  # what somebody has noted about it
    works: tuple[Work, ...] = ()
    error: Problem | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def was_there(self) -> bool:
        """Whether an earlier request with the same idempotency key began it: in the answer to
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
