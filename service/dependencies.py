"""What a route may ask for: the parts of the running service."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from service.bodies import Bodies
from service.contract.blobs import FileBlobs
from service.contract.queueing import Queues
from service.contract.records import Records
from service.watching import Watcher


@dataclass(frozen=True)
class Parts:
    records: Records
    queues: Queues
    blobs: FileBlobs
    watcher: Watcher
    bodies: Bodies = field(default_factory=Bodies)


def _parts(request: Request) -> Parts:
    parts = request.app.state.parts
    assert isinstance(parts, Parts)
    return parts


Service = Annotated[Parts, Depends(_parts)]
