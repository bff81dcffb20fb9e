"""The arguments of routes: the parts of the running service, and where a request comes from."""

import ipaddress
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request

from service.access.keys import is_valid_asker
from service.access.oidc.exchange import TokenExchange
from service.contract.askers import LOCAL, Asker, Scope
from service.contract.quotas import QuotaTable
from service.contract.settings import MOST_RUNS
from service.engine.database import SqlitePageCheck
from service.engine.service_parts import ServiceParts
from service.http.kept_answers import KeptAnswers, ListedAnswers
from service.http.live.runs import Watcher
from service.http.telemetry import Telemetry
from service.outbound.client import OutboundClient
from service.stored.upload_turns import UploadCompletions, UploadTurns


@dataclass(frozen=True)
class Running(ServiceParts):
    """`Parts`, and the parts that only a running application has."""

    watcher: Watcher
    telemetry: Telemetry
    record_pages: SqlitePageCheck
    most_runs: int = MOST_RUNS  # that may be unfinished at once
    kept_answers: KeptAnswers = field(default_factory=KeptAnswers)
    listed_answers: ListedAnswers = field(default_factory=ListedAnswers)
    outgoing: OutboundClient = field(default_factory=OutboundClient)
    turns: UploadTurns = field(default_factory=UploadTurns)  # of uploads that go on after a cut
    endings: UploadCompletions = field(default_factory=UploadCompletions)
    allowed: QuotaTable = field(default_factory=QuotaTable)
    jobs: TokenExchange = field(default_factory=TokenExchange)

    def has_valid_key(self) -> bool:
        """Whether the key of this request is valid now, and has not ended while it waited."""
        return is_valid_asker(self.records.of_all, self.asker)

    @classmethod
    def on(
        cls,
        parts: ServiceParts,
        most_runs: int = MOST_RUNS,
        outgoing: OutboundClient | None = None,
        allowed: QuotaTable | None = None,
        jobs: TokenExchange | None = None,
    ) -> "Running":
        own = (
            Watcher(parts.records),
            Telemetry(parts.records, parts.queue, parts.places.home),
            SqlitePageCheck(parts.records.engine),
            most_runs,
        )
        given = parts.records, parts.blobs, parts.queue, parts.places
        named: dict[str, Any] = {
            "speed": parts.speed,
            "protected": parts.protected,
            "public_url": parts.public_url,
            "outgoing": outgoing or OutboundClient(),
            "allowed": allowed or QuotaTable(),
            "jobs": jobs or TokenExchange(),
        }
        return cls(*given, *own, **named)


async def _running(request: Request) -> Running:
    """The service for whoever asks. Async, since FastAPI would start a thread for a plain function:
    a third of a poll's time.
    """
    parts = request.app.state.parts
    assert isinstance(parts, Running)
    return parts.asked_by(asker_of(request))


def asker_of(request: Request) -> Asker:
    """Who asks, as `entrance.keyring` has found; who needs no key for it may only read."""
    found = getattr(request.state, "asker", None)
    if isinstance(found, Asker):
        return found
    return Asker(scope=Scope.READ, address=address_of(request))


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


def caller_of(request: Request) -> str:
    """Who asks, as turns and places in the queue know them."""
    return asker_of(request).caller


async def _caller(request: Request) -> str:
    return caller_of(request)


Service = Annotated[Running, Depends(_running)]
Caller = Annotated[str, Depends(_caller)]
