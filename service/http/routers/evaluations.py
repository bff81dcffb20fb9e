"""/v1/evaluations: submit, list, poll, cancel."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from service.contract.api.evaluations import EvaluationOut, EvaluationPage
from service.contract.api.requests import EvaluationIn
from service.contract.api.texts import DatasetFilter
from service.contract.errors import (
    Conflict,
    InvalidCursor,
    InvalidRequest,
)
from service.contract.plan.works import EvaluationStatus
from service.http import openapi
from service.http.dependencies import Service
from service.http.json_bodies import JsonRoute
from service.http.preferences import idempotency_key
from service.http.routers import polling
from service.http.routers.parameters import (
    Cursor,
    Digits,
    IdempotencyKey,
    Identity,
    IfNoneMatch,
    Prefer,
)
from service.runs import evaluations, labelled, results, submissions
from service.runs.listing import PARAMETERS, list_evaluations

router = APIRouter(prefix="/v1/evaluations", tags=["evaluations"], route_class=JsonRoute)


@router.post(
    "",
    operation_id="submit_evaluation",
    summary="Submit an evaluation",
    status_code=202,
    response_model=EvaluationOut,
    response_description="Taken in: poll or listen for its scores.",
    responses=polling.taken_in(EvaluationOut, "what it waits for is there", Conflict),
)
async def submit(
    request: EvaluationIn,
    service: Service,
    idempotency_key_: IdempotencyKey = None,
    prefer: Prefer = None,
) -> Response:
    """A checkpoint (uploaded before) or captions, to be scored on a split of a dataset. `Prefer:
    wait=N` holds for the pre-gen scores, or for the end where there are none. What has been
    computed once is not computed again.
    """
    key = idempotency_key(idempotency_key_)
    submitted = await asyncio.to_thread(
        submissions.submit, service.records, service.blobs, service.places, request, key
    )
    return await polling.submitted(
        service,
        f"/v1/evaluations/{submitted.id}",
        prefer,
        lambda: evaluations.get(service.records, submitted.id),
        results.is_early_enough,
    )


@router.get(
    "",
    operation_id="list_evaluations",
    summary="List evaluations",
    responses=openapi.refusals(InvalidCursor, InvalidRequest),
    openapi_extra={"parameters": [openapi.LABELS]},
)
def every(
    request: Request,
    service: Service,
    dataset: Annotated[
        DatasetFilter | None, Query(description="Those on it: `name` or `name@version`.")
    ] = None,
    status: Annotated[EvaluationStatus | None, Query(description="Those in this state.")] = None,
    limit: Annotated[int, Query(ge=1, le=200), Digits] = 50,
    cursor: Cursor = None,
) -> EvaluationPage:
    """The latest first, filtered by dataset, status and labels."""
    wanted = labelled.wanted(request.query_params.multi_items(), PARAMETERS)
    return list_evaluations(service.records, dataset, status, wanted, limit, cursor)


@router.get(
    "/{id}",
    operation_id="get_evaluation",
    summary="Look at an evaluation",
    response_model=EvaluationOut,
    responses=polling.described("It is"),
)
async def get(
    id: Identity,
    service: Service,
    if_none_match: IfNoneMatch = None,
    prefer: Prefer = None,
) -> Response:
    """Its works and scores by now: 200 whatever became of it, for a run that failed is no error of
    HTTP. `Prefer: wait=N` with `If-None-Match` is the long poll: it answers as soon as anything
    has changed, or 304 after N seconds.
    """
    return await polling.answer(
        service, id, if_none_match, prefer, lambda: evaluations.get(service.records, id)
    )


@router.post(
    "/{id}/cancel",
    operation_id="cancel_evaluation",
    summary="Cancel an evaluation",
    status_code=202,
    response_model=EvaluationOut,
    response_description="It has ended.",
    responses=polling.CANCELED,
)
def cancel(id: Identity, service: Service) -> Response:
    """Ends what nobody else waits for. Canceling what has ended changes nothing."""
    return polling.canceled(
        service, id, f"/v1/evaluations/{id}", lambda: evaluations.get(service.records, id)
    )
