"""The arguments of routes: the parts of the running service, and where a request comes from."""

import ipaddress
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from service.contract.settings import MOST_RUNS
from service.http.kept_answers import KeptAnswers, ListedAnswers
from service.http.telemetry import Telemetry
from service.http.watching import Watcher
from service.works.intake import LOCAL
from service.works.parts import Parts


@dataclass(frozen=True)
class Running(Parts):
    """`Parts`, and the parts that only a running application has."""

    watcher: Watcher
    telemetry: Telemetry
    most_runs: int = MOST_RUNS  # that may be unfinished at once
    kept_answers: KeptAnswers = field(default_factory=KeptAnswers)
    listed_answers: ListedAnswers = field(default_factory=ListedAnswers)

    @classmethod
    def on(cls, parts: Parts, most_runs: int = MOST_RUNS) -> "Running":
        watcher, telemetry = Watcher(parts.records), Telemetry(parts.records, parts.queue)
        own = watcher, telemetry, most_runs
        given = parts.records, parts.blobs, parts.queue, parts.places
        return cls(*given, *own, speed=parts.speed)


async def _running(request: Request) -> Running:
    """Async, since FastAPI would start a thread for a plain function: a third of a poll's time."""
    parts = request.app.state.parts
    assert isinstance(parts, Running)
    return parts


def address_of(request: Request) -> str:
    """The address that a request comes from. Whoever has one of IPv6 has 2⁶⁴ of them: they count as
    one. What a header says of it counts only if the operator has named the proxy.
    """
    try:
        found = ipaddress.ip_address(request.client.host if request.client else "")
    except ValueError:  # a unix socket
        return LOCAL
    if found.version == 4:
        return str(found)
    return str(ipaddress.ip_network((found, 64), strict=False))


async def _address(request: Request) -> str:
    return address_of(request)


Service = Annotated[Running, Depends(_running)]
Address = Annotated[str, Depends(_address)]
