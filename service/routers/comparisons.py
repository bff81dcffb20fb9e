"""/v1/comparisons: two evaluations of the same images, and whether their difference is chance."""

import asyncio

from fastapi import APIRouter, Response

from service import comparisons, interface, results, runs
from service.contract.errors import NotFound
from service.contract.requests import ComparisonIn
from service.contract.schemas.comparisons import ComparisonOut
from service.dependencies import Service
from service.json_bodies import JsonRoute
from service.routers import polling
from service.routers.parameters import ComparisonIdentity, IfNoneMatch, Prefer
from service.routers.polling import MADE, REFUSED, made

router = APIRouter(prefix="/v1/comparisons", tags=["comparisons"], route_class=JsonRoute)


@router.post(
    "",
    operation_id="submit_comparison",
    summary="Compare two evaluations",
    status_code=202,
    response_model=ComparisonOut,
    response_description="Taken in: poll for the scores.",
    responses={
        201: {
            "model": ComparisonOut,
            "description": "`Prefer: wait=N` was asked for, and it has ended.",
            **interface.headers(*MADE),
        },
        202: interface.headers(*MADE, "Retry-After"),
        **interface.refusals(*REFUSED),
    },
)
async def submit(request: ComparisonIn, service: Service, prefer: Prefer = None) -> Response:
    """Of the same split of the same version, by metrics that were computed alike; else it is
    refused, and the field that differs is named. A comparison is computed once.
    """
    identity = await asyncio.to_thread(comparisons.submit, service.records, service.blobs, request)
    await asyncio.to_thread(service.queues.flush, service.records)
    return await polling.submitted(
        service,
        f"/v1/comparisons/{identity}",
        prefer,
        lambda: comparisons.get(service.records, service.blobs, identity),
        results.is_over,
    )


@router.get(
    "/{id}",
    operation_id="get_comparison",
    summary="Look at a comparison",
    response_model=ComparisonOut,
    responses=polling.described("It is"),
)
async def get(
    id: ComparisonIdentity,
    service: Service,
    if_none_match: IfNoneMatch = None,
    prefer: Prefer = None,
) -> Response:
    """Polled as an evaluation is."""
    return await polling.answer(
        service,
        id,
        if_none_match,
        prefer,
        lambda: comparisons.get(service.records, service.blobs, id),
    )


@router.post(
    "/{id}/cancel",
    operation_id="cancel_comparison",
    summary="Cancel a comparison",
    status_code=202,
    response_model=ComparisonOut,
    response_description="It has ended.",
    responses={202: interface.headers("ETag", "Location"), **interface.refusals(NotFound)},
)
def cancel(id: ComparisonIdentity, service: Service) -> Response:
    """Ends what nobody else waits for."""
    runs.cancel(service.records, id)
    answer, version = comparisons.get(service.records, service.blobs, id)
    return made(answer, id, version, 202, {"Location": f"/v1/comparisons/{id}"})
