"""/v1/evaluations: submit, poll, listen, page through, cancel."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from service import details, evaluations, results, submissions
from service.contract.schemas import EvaluationIn, EvaluationOut, Page
from service.dependencies import Parts, Service
from service.listing import list_evaluations
from service.preferences import idempotency_key, matches, wait_seconds

router = APIRouter(prefix="/v1/evaluations", tags=["evaluations"])
RETRY_AFTER = "1"
_KEEP_ALIVE_SECONDS = 15.0

IdempotencyKey = Annotated[str | None, Header()]
Prefer = Annotated[str | None, Header()]
IfNoneMatch = Annotated[str | None, Header()]


@router.post(
    "",
    status_code=202,
    response_model=EvaluationOut,
    responses={201: {"model": EvaluationOut}},
)
async def submit(
    request: EvaluationIn,
    service: Service,
    idempotency_key_: Annotated[str | None, Header(alias="Idempotency-Key")] = None,
    prefer: Prefer = None,
) -> Response:
    """202 at once; `Prefer: wait=N` holds for the pre-gen scores (or the end): then 201."""
    key = idempotency_key(idempotency_key_)
    submitted = await asyncio.to_thread(
        submissions.submit, service.records, service.blobs, request, key
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


@router.get("")
def every(
    request: Request,
    service: Service,
    dataset: str | None = None,
    status: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: str | None = None,
) -> Page:
    """The latest first. `label.NAME=VALUE` filters by a label."""
    wanted = {
        name.removeprefix("label."): value
        for name, value in request.query_params.items()
        if name.startswith("label.")
    }
    return list_evaluations(service.records, dataset, status, wanted, limit, cursor)


@router.get("/{identity}", response_model=EvaluationOut, responses={304: {"description": "same"}})
async def get(
    identity: str,
    service: Service,
    if_none_match: IfNoneMatch = None,
    prefer: Prefer = None,
) -> Response:
    """Always 200, or 304. `Prefer: wait=N` with `If-None-Match` is the long poll."""
    version = evaluations.version(service.records, identity)  # 0.1 ms: a thread costs more
    etag = _etag(identity, version)
    seconds = wait_seconds(prefer)
    headers = {} if seconds is None else {"Preference-Applied": f"wait={seconds}"}
    if matches(if_none_match, etag):
        changed = seconds and await service.watcher.changed(identity, version, seconds)
        if not changed:
            return Response(status_code=304, headers={"ETag": etag, **headers})
    kept = service.bodies.get(identity, version)
    if kept is None:
        answer, version = await asyncio.to_thread(evaluations.get, service.records, identity)
        kept = service.bodies.keep(answer, version)
    if not kept.over and seconds is None:  # whoever waits here need not wait at home too
        headers["Retry-After"] = RETRY_AFTER
    headers["ETag"] = _etag(identity, kept.version)
    return Response(kept.text, 200, headers, media_type="application/json")


@router.post("/{identity}/cancel", status_code=202, response_model=EvaluationOut)
def cancel(identity: str, service: Service) -> Response:
    """Ends what nobody else waits for. Canceling what has ended changes nothing."""
    evaluations.cancel(service.records, identity)
    answer, version = evaluations.get(service.records, identity)
    return _json(answer, version, 202, {"Location": f"/v1/evaluations/{identity}"})


@router.get("/{identity}/pregen")
def pregen(identity: str, service: Service) -> JSONResponse:
    found = evaluations.pregen(service.records, identity)
    return JSONResponse({"scores": {name: score.model_dump() for name, score in found.items()}})


@router.get("/{identity}/captions", response_model=Page)
def captions(
    identity: str,
    service: Service,
    accept: Annotated[str | None, Header()] = None,
    format: Literal["coco"] | None = None,  # noqa: A002  the contract's name
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    cursor: str | None = None,
) -> Response | Page:
    """Pages of captions with their own scores; all of them as CSV (Accept: text/csv) or COCO."""
    if format == "coco":
        return JSONResponse(details.captions_coco(service.records, service.blobs, identity))
    if accept is not None and "text/csv" in accept:
        lines = details.captions_csv(service.records, service.blobs, identity)
        return Response("".join(lines), media_type="text/csv")
    return details.captions(service.records, service.blobs, identity, limit, cursor)


@router.get("/{identity}/tokens/{image:path}")
def tokens(identity: str, image: str, service: Service) -> JSONResponse:
    """The references of one image, word by word: log-probability, rank, the model's own word."""
    return JSONResponse(details.tokens(service.records, service.blobs, identity, image))


@router.get("/{identity}/events")
async def events(
    identity: str,
    service: Service,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Server-sent events `work`, `scores`, `end`; resumes after Last-Event-ID."""
    await asyncio.to_thread(evaluations.version, service.records, identity)
    after = int(last_event_id) if last_event_id and last_event_id.isdecimal() else 0
    return StreamingResponse(
        _stream(service, identity, after),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(service: Parts, identity: str, after: int) -> AsyncIterator[str]:
    while True:
        version = await asyncio.to_thread(evaluations.version, service.records, identity)
        found = await asyncio.to_thread(results.events, service.records, identity, after)
        for event in found:
            yield f"id: {event.version}\nevent: {event.kind}\ndata: {event.payload}\n\n"
            after = event.version
            if event.kind == "end":
                return
        if not await service.watcher.changed(identity, version, _KEEP_ALIVE_SECONDS):
            yield ": still here\n\n"


def _etag(identity: str, version: int) -> str:
    return f'"{identity}.{version}"'


def _json(answer: EvaluationOut, version: int, status: int, headers: dict[str, str]) -> Response:
    return Response(
        answer.model_dump_json(),
        status,
        {"ETag": _etag(answer.id, version), **headers},
        media_type="application/json",
    )
