"""What a route may ask for: the parts of the running service."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from service.http.bodies import Bodies
from service.http.telemetry import Telemetry
from service.http.watching import Watcher
from service.works.parts import Parts


@dataclass(frozen=True)
class Running(Parts):
    """The parts that rules work with, and those that only a running application has."""

    watcher: Watcher
    telemetry: Telemetry
    bodies: Bodies = field(default_factory=Bodies)

    @classmethod
    def on(cls, parts: Parts) -> "Running":
        watcher, telemetry = Watcher(parts.records), Telemetry(parts.records, parts.queue)
        return cls(parts.records, parts.blobs, parts.queue, parts.places, watcher, telemetry)


async def _running(request: Request) -> Running:
    """Not a plain function: FastAPI would start a thread for it, a third of what a poll takes."""
    parts = request.app.state.parts
    assert isinstance(parts, Running)
    return parts


Service = Annotated[Running, Depends(_running)]
