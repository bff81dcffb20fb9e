"""/v1/probes: what metrics reward and overlook on a dataset's own references."""

import asyncio

from fastapi import APIRouter, Response

from service import interface, probes, results, runs
from service.contract.errors import (
    NotFound,
)
from service.contract.requests import ProbesIn
from service.contract.schemas.probes import ProbesOut
from service.dependencies import Service
from service.json_bodies import JsonRoute
from service.routers import polling
from service.routers.parameters import IfNoneMatch, Prefer, ProbesIdentity
from service.routers.polling import MADE, REFUSED, made

router = APIRouter(prefix="/v1/probes", tags=["probes"], route_class=JsonRoute)


@router.post(
    "",
    operation_id="submit_probes",
    summary="Probe a dataset",
    status_code=202,
    response_model=ProbesOut,
    response_description="Taken in: poll for the tables.",
    responses={
        201: {
            "model": ProbesOut,
            "description": "`Prefer: wait=N` was asked for, and they have ended.",
            **interface.headers(*MADE),
        },
        202: interface.headers(*MADE, "Retry-After"),
        **interface.refusals(*REFUSED),
    },
)
async def submit(request: ProbesIn, service: Service, prefer: Prefer = None) -> Response:
    """People against people and against a system, frequent and rare words made unknown, words
    swapped or replaced at random, one sentence for all images. A table is computed once.
    """
    identity = await asyncio.to_thread(
        probes.submit, service.records, service.blobs, service.places, request
    )
    await asyncio.to_thread(service.queues.flush, service.records)
    return await polling.submitted(
        service,
        f"/v1/probes/{identity}",
        prefer,
        lambda: probes.get(service.records, identity),
        results.is_over,
    )


@router.get(
    "/{id}",
    operation_id="get_probes",
    summary="Look at probes",
    response_model=ProbesOut,
    responses=polling.described("They are"),
)
async def get(
    id: ProbesIdentity, service: Service, if_none_match: IfNoneMatch = None, prefer: Prefer = None
) -> Response:
    """Polled as an evaluation is."""
    return await polling.answer(
        service, id, if_none_match, prefer, lambda: probes.get(service.records, id)
    )


@router.post(
    "/{id}/cancel",
    operation_id="cancel_probes",
    summary="Cancel probes",
    status_code=202,
    response_model=ProbesOut,
    response_description="They have ended.",
    responses={202: interface.headers("ETag", "Location"), **interface.refusals(NotFound)},
)
def cancel(id: ProbesIdentity, service: Service) -> Response:
    """Ends what nobody else waits for."""
    runs.cancel(service.records, id)
    answer, version = probes.get(service.records, id)
    return made(answer, id, version, 202, {"Location": f"/v1/probes/{id}"})
