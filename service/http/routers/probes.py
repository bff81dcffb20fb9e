"""/v1/probes: what metrics reward and overlook on a dataset's own references."""

import asyncio

from fastapi import APIRouter, Response

from service.contract.api.probes import ProbesOut
from service.contract.api.requests import ProbesIn
from service.http.dependencies import Service
from service.http.json_bodies import JsonRoute
from service.http.routers import polling
from service.http.routers.parameters import IfNoneMatch, Prefer, ProbesIdentity
from service.runs import probes, results

router = APIRouter(prefix="/v1/probes", tags=["probes"], route_class=JsonRoute)


@router.post(
    "",
    operation_id="submit_probes",
    summary="Probe a dataset",
    status_code=202,
    response_model=ProbesOut,
    response_description="Taken in: poll for the tables.",
    responses=polling.taken_in(ProbesOut, "they have ended"),
)
async def submit(request: ProbesIn, service: Service, prefer: Prefer = None) -> Response:
    """People against people and against a system, frequent and rare words made unknown, words
    swapped or replaced at random, one sentence for all images. A table is computed once.
    """
    identity = await asyncio.to_thread(
        probes.submit, service.records, service.blobs, service.places, request
    )
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
    responses=polling.CANCELED,
)
def cancel(id: ProbesIdentity, service: Service) -> Response:
    """Ends what nobody else waits for."""
    return polling.canceled(
        service, id, f"/v1/probes/{id}", lambda: probes.get(service.records, id)
    )
