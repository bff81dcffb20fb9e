"""The argument of routes: the parts of the running service."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from service.http.kept_answers import KeptAnswers, ListedAnswers
from service.http.telemetry import Telemetry
from service.http.watching import Watcher
from service.works.parts import Parts


@dataclass(frozen=True)
class Running(Parts):
    """`Parts`, and the parts that only a running application has."""

    watcher: Watcher
    telemetry: Telemetry
    kept_answers: KeptAnswers = field(default_factory=KeptAnswers)
    listed_answers: ListedAnswers = field(default_factory=ListedAnswers)

    @classmethod
    def on(cls, parts: Parts) -> "Running":
        watcher, telemetry = Watcher(parts.records), Telemetry(parts.records, parts.queue)
        return cls(parts.records, parts.blobs, parts.queue, parts.places, watcher, telemetry)


async def _running(request: Request) -> Running:
    """Async, since FastAPI would start a thread for a plain function: a third of a poll's time."""
    parts = request.app.state.parts
    assert isinstance(parts, Running)
    return parts


Service = Annotated[Running, Depends(_running)]
