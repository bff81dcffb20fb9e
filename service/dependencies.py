"""What a route may ask for: the parts of the running service."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from service.bodies import Bodies
from service.contract.assets import Places
from service.contract.blobs import Blobs
from service.contract.queueing import Queues
from service.contract.records import Records
from service.telemetry import Telemetry
from service.watching import Watcher


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
