"""The arguments of routes: the parts of the running service, and where a request comes from."""

import ipaddress
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from fastapi import Depends, Request

from service.access.keys import is_valid_asker
from service.access.oidc.exchange import TokenExchange
from service.contract.askers import LOCAL, Asker, Scope
from service.contract.quotas import QuotaTable
from service.contract.settings import MOST_RUNS
from service.engine.database import SqlitePageCheck
from service.engine.service_parts import ServiceParts
from service.http.responses import AnswerCache, ListAnswerCache
from service.http.telemetry import Telemetry
from service.http.watchers import RunWatcher
from service.outbound.client import OutboundClient
from service.stored.upload_turns import UploadCompletions, UploadTurns


@dataclass(frozen=True)
class AppParts(ServiceParts):
    """`Parts`, and the parts that only a running application has."""

    watcher: RunWatcher
    telemetry: Telemetry
    record_pages: SqlitePageCheck
    most_runs: int = MOST_RUNS  # that may be unfinished at once
    kept_answers: AnswerCache = field(default_factory=AnswerCache)
    listed_answers: ListAnswerCache = field(default_factory=ListAnswerCache)
    outgoing: OutboundClient = field(default_factory=OutboundClient)
    turns: UploadTurns = field(default_factory=UploadTurns)  # of uploads that go on after a cut
    endings: UploadCompletions = field(default_factory=UploadCompletions)
    allowed: QuotaTable = field(default_factory=QuotaTable)
    jobs: TokenExchange = field(default_factory=TokenExchange)

    def has_valid_key(self) -> bool:
        """Tell whether the key of this request is valid now, and has not ended while it waited."""
        return is_valid_asker(self.records.of_all, self.asker)

    @classmethod
    def on(cls, parts: ServiceParts, **more: Any) -> "AppParts":
        """The parts of an application on these; `more`: fields that are not as usual."""
        return cls(
            **{each.name: getattr(parts, each.name) for each in fields(parts)},
            watcher=RunWatcher(parts.records),
            telemetry=Telemetry(parts.records, parts.queue, parts.places.home),
            record_pages=SqlitePageCheck(parts.records.engine),
            **more,
        )


async def _app_parts(request: Request) -> AppParts:
    """Parts of the service for a request. Async, since FastAPI would start a thread for a plain
    function: a third of a poll's time.
    """
    parts = request.app.state.parts
    assert isinstance(parts, AppParts)
    return parts.asked_by(find_asker(request))


def find_asker(request: Request) -> Asker:
    """Find the asker that authentication has noted; without a key it may only read."""
    found = getattr(request.state, "asker", None)
    if isinstance(found, Asker):
        return found
    return Asker(scope=Scope.READ, address=find_address(request))


def find_address(request: Request) -> str:
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


def find_caller(request: Request) -> str:
    """Find the caller, by whose name turns and places in the queue are counted."""
    return find_asker(request).caller


async def _caller(request: Request) -> str:
    return find_caller(request)


Service = Annotated[AppParts, Depends(_app_parts)]
Caller = Annotated[str, Depends(_caller)]
