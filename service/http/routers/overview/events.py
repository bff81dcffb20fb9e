"""/v1/events: what changes among all of a team's runs."""

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from service.contract.api.runs import RunEvent
from service.http import openapi
from service.http.dependencies import Running, Service
from service.http.entrance.access import ScopedRoute
from service.works.keyring.keys import is_valid

router = APIRouter(prefix="/v1/events", tags=["evaluations"], route_class=ScopedRoute)
_KEEP_ALIVE_SECONDS = 15.0


@router.get(
    "",
    operation_id="stream_team_events",
    summary="Listen to all runs of the team",
    response_class=StreamingResponse,
    response_description="Server-sent events without ids, until the listener leaves.",
    responses={
        200: {"content": {"text/event-stream": {"schema": openapi.event("run", RunEvent)}}},
        **openapi.refusals(),
    },
)
async def events(request: Request, service: Service) -> StreamingResponse:
    """An event `run` for each new state of a run: of evaluations, comparisons, probes, trainings
    and studies. What changed while nobody listened is not told: ask for it after the connection
    is made. Comments keep a connection without events open.
    """
    return StreamingResponse(
        _stream(request, service),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(request: Request, service: Running) -> AsyncIterator[str]:
    yield ": listening\n\n"
    team = service.asker.team
    async for changed in request.app.state.teams.changes(
        team, service.records, _KEEP_ALIVE_SECONDS
    ):
        if not await asyncio.to_thread(is_valid, service.records.of_all, service.asker):
            return
        for identity, (kind, version, status) in changed.items():
            told = {"kind": kind, "id": identity, "version": version, "status": status}
            yield f"event: run\ndata: {json.dumps(told)}\n\n"
        if not changed:
            yield ": still here\n\n"
