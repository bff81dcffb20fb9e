"""/v1/comparisons: two evaluations of the same images, and whether their difference is chance."""

import asyncio

from fastapi import APIRouter, Response

from service.contract.api.comparisons import ComparisonOut
from service.contract.api.requests import ComparisonIn
from service.http.dependencies import Service
from service.http.json_bodies import JsonRoute
from service.http.routers import polling
from service.http.routers.parameters import ComparisonIdentity, IfNoneMatch, Prefer
from service.runs import comparisons, results

router = APIRouter(prefix="/v1/comparisons", tags=["comparisons"], route_class=JsonRoute)


@router.post(
    "",
    operation_id="submit_comparison",
    summary="Compare two evaluations",
    status_code=202,
    response_model=ComparisonOut,
    response_description="Taken in: poll for the scores.",
    responses=polling.taken_in(ComparisonOut, "it has ended"),
)
async def submit(request: ComparisonIn, service: Service, prefer: Prefer = None) -> Response:
    """Of the same split of the same version, by metrics that were computed alike; else it is
    refused, and the field that differs is named. A comparison is computed once.
    """
    identity = await asyncio.to_thread(comparisons.submit, service.records, service.blobs, request)
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
    responses=polling.CANCELED,
)
def cancel(id: ComparisonIdentity, service: Service) -> Response:
    """Ends what nobody else waits for."""
    return polling.canceled(
        service,
        id,
        f"/v1/comparisons/{id}",
        lambda: comparisons.get(service.records, service.blobs, id),
    )
