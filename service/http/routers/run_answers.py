"""Answers to submitting and polling runs: `Prefer: wait`, ETag, 304, long polls."""

import asyncio

from fastapi import Response

from prescore.models.runs import Run
from service.contract import errors
from service.http.dependencies import AppParts
from service.http.responses import Metrics
from service.http.routers.request_parameters import matches_etag, read_wait_seconds
from service.runs import run_store
from service.runs.kinds import SubmittedRun
from service.runs.run_store import AnyRunKind

RETRY_AFTER = "1"


async def answer_submission(
    service: AppParts, kind: AnyRunKind, run: SubmittedRun, prefer: str | None
) -> Response:
    """202; or 201 if `Prefer: wait=N` was sent and the awaited results came in time."""
    seconds = read_wait_seconds(prefer)
    until = asyncio.get_running_loop().time() + (seconds or 0)
    while True:
        found, version = await asyncio.to_thread(kind.look, service, run.identity)
        left = until - asyncio.get_running_loop().time()
        if kind.enough(found) or left <= 0:
            break
        await service.watcher.changed(found.id, version, left)
    await _check_key(service, seconds)
    headers = {"Location": f"{kind.place}/{run.identity}"}
    if run.replayed:
        headers["Idempotency-Replayed"] = "true"
    status = 201 if seconds is not None and kind.enough(found) else 202
    if status == 202:
        headers["Retry-After"] = RETRY_AFTER
    if seconds is not None:
        headers["Preference-Applied"] = f"wait={seconds}"
    return _run_response(found, version, status, headers)


async def answer_poll(
    service: AppParts,
    kind: AnyRunKind,
    identity: str,
    if_none_match: str | None,
    prefer: str | None,
    metrics: Metrics = None,
) -> Response:
    """200 with the run as it is now, or 304 if its version has not changed. Who waits without a
    version waits for the end.
    """
    seconds = read_wait_seconds(prefer)
    version = await _version(service, kind, identity, seconds if if_none_match is None else None)
    tag = make_etag(identity, version)
    headers = {} if seconds is None else {"Preference-Applied": f"wait={seconds}"}
    is_known, changed = matches_etag(if_none_match, tag), None
    if is_known and seconds:
        changed = await service.watcher.changed(identity, version, seconds)
    await _check_key(service, seconds)
    if is_known:
        if changed is None:
            return Response(status_code=304, headers={"ETag": tag, **headers})
        version = changed
    kept = await service.kept_answers.get(
        identity, version, metrics, lambda: kind.look(service, identity, metrics)
    )
    if not kept.over and seconds is None:  # a client that waits here need not pause between polls
        headers["Retry-After"] = RETRY_AFTER
    headers["ETag"] = make_etag(identity, kept.version)
    return Response(kept.text, 200, headers, media_type="application/json")


async def _check_key(service: AppParts, seconds: int | None) -> None:
    """Refuse a request that has waited, if its key ended meanwhile."""
    if seconds and not await asyncio.to_thread(service.has_valid_key):
        raise errors.Unauthorized(
            "expected a valid key, found one that ended while the request waited"
        )


async def _version(
    service: AppParts, kind: AnyRunKind, identity: str, seconds: float | None
) -> int:
    """The run's version now, or when it has ended, or after so many seconds."""
    now = asyncio.get_running_loop().time
    until = now() + (seconds or 0)
    version, over = await _state(service, kind, identity)
    while not over and (left := until - now()) > 0:
        await service.watcher.changed(identity, version, left)
        version, over = await _state(service, kind, identity)
    return version


async def _state(service: AppParts, kind: AnyRunKind, identity: str) -> tuple[int, bool]:
    """Read at once from a file, which takes 0.1 ms; a thread would take longer. A server may let
    us wait.
    """
    if service.records.is_file:
        return run_store.read_state(service.records, identity, kind)
    return await asyncio.to_thread(run_store.read_state, service.records, identity, kind)


def answer_cancellation(service: AppParts, kind: AnyRunKind, identity: str) -> Response:
    run_store.cancel_run(service, identity, kind)
    found, version = kind.look(service, identity)
    return _run_response(found, version, 202, {"Location": f"{kind.place}/{identity}"})


def answer_change(service: AppParts, kind: AnyRunKind, identity: str) -> Response:
    found, version = kind.look(service, identity)
    return _run_response(found, version, 200, {})


def _run_response(answer: Run, version: int, status: int, headers: dict[str, str]) -> Response:
    """The answer with a run that was submitted, changed or canceled."""
    return Response(
        answer.model_dump_json(),
        status,
        {"ETag": make_etag(answer.id, version), **headers},
        media_type="application/json",
    )


def make_etag(identity: str, version: int) -> str:
    return f'"{identity}.{version}"'
