"""/v1/events: changes of all of a team's runs, as server-sent events."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from prescore.models.runs import RunEvent
from service.http import openapi, responses
from service.http.dependencies import AppParts, Service
from service.http.routers.request_parameters import Digits
from service.http.service_route import ServiceRoute
from service.http.watchers import MOST_WATCHED, RECENT_SECONDS

router = APIRouter(prefix="/v1/events", tags=["evaluations"], route_class=ServiceRoute)
_KEEP_ALIVE_SECONDS = 15.0
_NEARLY = 0.05  # seconds: a timer may be early


@router.get(
    "",
    operation_id="stream_team_events",
    summary="Listen to all runs of the team",
    response_class=StreamingResponse,
    response_description="Server-sent events without ids; their `event` is `run`.",
    responses={
        200: {"content": {"text/event-stream": {"schema": openapi.describe_event("run", RunEvent)}}}
    },
)
async def stream_team_events(
    request: Request,
    service: Service,
    seconds: Annotated[
        int | None,
        Query(ge=1, le=3600, description="How long to listen; without it, until you leave."),
        Digits,
    ] = None,
    recent: Annotated[
        bool,
        Query(
            description="Begin with the runs that have not ended, and those that ended in the last "
            f"{RECENT_SECONDS:.0f} seconds, at most {MOST_WATCHED} of each: answers that you had "
            "just before need not be asked for again."
        ),
    ] = False,
) -> StreamingResponse:
    """An event `run` for each new state of a run: of evaluations, comparisons, probes, trainings
    and studies. What changed while nobody listened is not told: ask for it after the connection
    is made. Comments keep a connection without events open.
    """
    until = math.inf if seconds is None else seconds
    return responses.stream_events(_stream(request, service, until, recent=recent))


async def _stream(
    request: Request, service: AppParts, seconds: float, *, recent: bool
) -> AsyncIterator[str]:
    yield ": listening\n\n"
    until = time.monotonic() + seconds
    changes = request.app.state.teams.changes(
        service.asker.team,
        service.records,
        lambda: min(_KEEP_ALIVE_SECONDS, until - time.monotonic()),
        recent=recent,
    )
    async for changed in changes:
        if time.monotonic() >= until - _NEARLY or not await asyncio.to_thread(
            service.has_valid_key
        ):
            return
        for identity, (kind, version, status) in changed.items():
            told = {"kind": kind, "id": identity, "version": version, "status": status}
            yield f"event: run\ndata: {json.dumps(told)}\n\n"
        if not changed:
            yield ": still here\n\n"
