"""/v1/evaluations: submit, list, poll, cancel."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from service import evaluations, interface, results, submissions
from service.contract.errors import (
    BlobDamaged,
    BlobMissing,
    Conflict,
    DiskFull,
    InvalidCursor,
    InvalidRequest,
    MalformedJson,
    NotFound,
    StoreUnavailable,
    TooLarge,
    UnknownMetric,
    UnsupportedMedia,
)
from service.contract.requests import EvaluationIn
from service.contract.schemas import EvaluationOut, EvaluationPage
from service.contract.texts import DatasetFilter
from service.contract.works import EvaluationStatus
from service.dependencies import Parts, Service
from service.json_bodies import JsonRoute
from service.listing import list_evaluations, wanted_labels
from service.preferences import idempotency_key, matches, wait_seconds
from service.routers.parameters import Cursor, Digits, IdempotencyKey, Identity, IfNoneMatch, Prefer

router = APIRouter(prefix="/v1/evaluations", tags=["evaluations"], route_class=JsonRoute)
RETRY_AFTER = "1"
_WAITED = ("ETag", "Retry-After", "Preference-Applied")
_MADE = ("ETag", "Location", "Preference-Applied")


@router.post(
    "",
    operation_id="submit_evaluation",
    summary="Submit an evaluation",
    status_code=202,
    response_model=EvaluationOut,
    response_description="Taken in: poll or listen for its scores.",
    responses={
        201: {
            "model": EvaluationOut,
            "description": "`Prefer: wait=N` was asked for, and what it waits for is there.",
            **interface.headers(*_MADE),
        },
        202: interface.headers(*_MADE, "Retry-After"),
        **interface.refusals(
            MalformedJson,
            NotFound,
            BlobMissing,
            BlobDamaged,
            StoreUnavailable,
            Conflict,
            TooLarge,
            UnsupportedMedia,
            InvalidRequest,
            UnknownMetric,
            DiskFull,
        ),
    },
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
    await asyncio.to_thread(service.queues.flush, service.records)
    headers = {"Location": f"/v1/evaluations/{submitted.id}"}
    seconds = wait_seconds(prefer)
    answer, version = await _wait_for_pregen(service, submitted.id, seconds or 0)
    status = 201 if seconds is not None and results.is_early_enough(answer) else 202
    if status == 202:
        headers["Retry-After"] = RETRY_AFTER
    if seconds is not None:
        headers["Preference-Applied"] = f"wait={seconds}"
    return _json(answer, version, status, headers)


async def _wait_for_pregen(
    service: Parts, identity: str, seconds: float
) -> tuple[EvaluationOut, int]:
    until = asyncio.get_running_loop().time() + seconds
    while True:
        answer, version = await asyncio.to_thread(evaluations.get, service.records, identity)
        left = until - asyncio.get_running_loop().time()
        if results.is_early_enough(answer) or left <= 0:
            return answer, version
        await service.watcher.changed(identity, version, left)


@router.get(
    "",
    operation_id="list_evaluations",
    summary="List evaluations",
    responses=interface.refusals(InvalidCursor, InvalidRequest),
    openapi_extra={"parameters": [interface.LABELS]},
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
    wanted = wanted_labels(request.query_params.multi_items())
    return list_evaluations(service.records, dataset, status, wanted, limit, cursor)


@router.get(
    "/{id}",
    operation_id="get_evaluation",
    summary="Look at an evaluation",
    response_model=EvaluationOut,
    responses={
        200: interface.headers(*_WAITED),
        304: {
            "description": "It is as `If-None-Match` says.",
            **interface.headers("ETag", "Preference-Applied"),
        },
        **interface.refusals(NotFound),
    },
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
    version = evaluations.version(service.records, id)  # 0.1 ms: a thread costs more
    etag = _etag(id, version)
    seconds = wait_seconds(prefer)
    headers = {} if seconds is None else {"Preference-Applied": f"wait={seconds}"}
    if matches(if_none_match, etag):
        changed = await service.watcher.changed(id, version, seconds) if seconds else None
        if changed is None:
            return Response(status_code=304, headers={"ETag": etag, **headers})
        version = changed
    kept = await service.bodies.get(id, version, lambda: evaluations.get(service.records, id))
    if not kept.over and seconds is None:  # whoever waits here need not wait at home too
        headers["Retry-After"] = RETRY_AFTER
    headers["ETag"] = _etag(id, kept.version)
    return Response(kept.text, 200, headers, media_type="application/json")


@router.post(
    "/{id}/cancel",
    operation_id="cancel_evaluation",
    summary="Cancel an evaluation",
    status_code=202,
    response_model=EvaluationOut,
    response_description="It has ended.",
    responses={202: interface.headers("ETag", "Location"), **interface.refusals(NotFound)},
)
def cancel(id: Identity, service: Service) -> Response:
    """Ends what nobody else waits for. Canceling what has ended changes nothing."""
    evaluations.cancel(service.records, id)
    answer, version = evaluations.get(service.records, id)
    return _json(answer, version, 202, {"Location": f"/v1/evaluations/{id}"})


def _etag(identity: str, version: int) -> str:
    return f'"{identity}.{version}"'


def _json(answer: EvaluationOut, version: int, status: int, headers: dict[str, str]) -> Response:
    return Response(
        answer.model_dump_json(),
        status,
        {"ETag": _etag(answer.id, version), **headers},
        media_type="application/json",
    )
