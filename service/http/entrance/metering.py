"""What uploads cost their team: looked at before a body is read, counted when it was.

What could not be kept by our own fault (a full disk, a store or a record that is away) is not
counted.
"""

import asyncio

from fastapi import Request, Response

from service.contract.errors import PrescoreError
from service.contract.quotas import Quotas
from service.engine import quotas as usage
from service.http import problems
from service.http.dependencies import Running, asker_of

UPLOADS = frozenset(
    {
        *("upload_checkpoint", "upload_columns", "upload_dataset", "fetch_dataset"),
        *("create_upload", "append_upload", "place_parts"),
    }
)
_OURS = 500  # statuses from here on are the service's fault


class Meter:
    """Of one request: how many bytes it may bring, and how many have come."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.received = 0


def meter_of(request: Request) -> Meter:
    """That of a request; one that counts for nobody where its team has no limit."""
    found = getattr(request.state, "meter", None)
    return found if isinstance(found, Meter) else Meter(None)


async def before(request: Request) -> Meter | None:
    """A meter where the team's uploads are limited. LimitReached where nothing is left."""
    service = request.app.state.parts
    assert isinstance(service, Running)
    asker = asker_of(request)
    quotas = service.allowed.of(asker)
    if not _is_limited(quotas):
        return None
    length = request.headers.get("content-length", "")
    announced = int(length) if length.isdigit() else None
    records = service.records.of(asker.team)
    meter = Meter(await asyncio.to_thread(usage.check_upload_quota, records, quotas, announced))
    request.state.meter = meter
    return meter


async def after(request: Request, meter: Meter, answered: Response | Exception) -> None:
    """Count what has come, unless it was lost by our fault."""
    status = answered.status_code if isinstance(answered, Response) else _status(answered)
    if status >= _OURS or not meter.received:
        return
    service = request.app.state.parts
    await asyncio.to_thread(_count, service, asker_of(request).team, meter.received)


def _count(service: Running, team: str, size: int) -> None:
    with service.records.of(team).transaction() as connection:
        usage.add_usage(connection, team, "upload_bytes", size)


def _is_limited(quotas: Quotas) -> bool:
    return quotas.upload_bytes is not None or quotas.stored_bytes is not None


def _status(error: Exception) -> int:
    is_known = isinstance(error, PrescoreError)
    return problems.status_of(type(error)) if is_known else _OURS  # type: ignore[arg-type]
