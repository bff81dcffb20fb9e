"""What a route may ask for: the parts of the running service."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from service.contract.plan.assets import Places
from service.http.bodies import Bodies
from service.http.telemetry import Telemetry
from service.http.watching import Watcher
from service.works.blobs import Blobs
from service.works.queueing import Queues
from service.works.records import Records


@dataclass(frozen=True)
class Parts:
    records: Records
    queues: Queues
    blobs: Blobs
    watcher: Watcher
    telemetry: Telemetry
    places: Places
    bodies: Bodies = field(default_factory=Bodies)


async def _parts(request: Request) -> Parts:
    """Not a plain function: FastAPI would start a thread for it, a third of what a poll takes."""
    parts = request.app.state.parts
    assert isinstance(parts, Parts)
    return parts


Service = Annotated[Parts, Depends(_parts)]
