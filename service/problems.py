"""Errors -> application/problem+json (RFC 9457). The only place that knows of both."""

import uuid
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from service.contract import errors

log = structlog.get_logger()

STATUS: Mapping[type[errors.RequestRefused], int] = {
    errors.InvalidCheckpoint: 422,
    errors.InvalidBundle: 422,
    errors.UnknownMetric: 422,
    errors.InvalidRequest: 422,
    errors.InvalidSetting: 500,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.DigestMismatch: 422,
    errors.TooLarge: 413,
    errors.InvalidCursor: 400,
    errors.Overloaded: 503,
    errors.RequestRefused: 400,
}


def install(app: FastAPI) -> None:
    app.add_exception_handler(errors.RequestRefused, _refused)
    app.add_exception_handler(errors.RunFailed, _damaged)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    request_id: str | None = None,
    problems: Sequence[tuple[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    body: dict[str, Any] = {
        "type": f"urn:prescore:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "code": code,
        "status": status,
        "detail": detail,
        "request_id": request_id or uuid.uuid4().hex,
    }
    if problems:
        body["errors"] = [{"pointer": pointer, "detail": text} for pointer, text in problems]
    return JSONResponse(body, status, dict(headers or {}), media_type="application/problem+json")


def status_of(error: errors.RequestRefused) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def _request_id(request: Request) -> str:
    return str(getattr(request.state, "request_id", "")) or uuid.uuid4().hex


def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, errors.RequestRefused)
    problems = getattr(error, "problems", ())
    if not problems and error.pointer is not None:
        problems = [(error.pointer, error.detail)]
    status = status_of(error)
    return problem(
        status,
        error.code,
        error.detail,
        request_id=_request_id(request),
        problems=problems,
        headers={"Retry-After": "5"} if status == HTTPStatus.SERVICE_UNAVAILABLE else None,
    )


def _damaged(request: Request, error: Exception) -> JSONResponse:
    """A run's error that reached a request: an object of the store is missing or damaged."""
    assert isinstance(error, errors.RunFailed)
    return problem(404, error.code, error.detail, request_id=_request_id(request))


def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = []
    for found in error.errors()[:100]:
        place = [part for part in found["loc"] if part != "body"]
        if found["type"] == "json_invalid":
            return problem(
                400,
                "malformed_json",
                f"expected JSON: {found['ctx']['error']} at character {found['loc'][-1]}",
                request_id=_request_id(request),
            )
        problems.append(("".join(f"/{part}" for part in place), str(found["msg"])))
    detail = "; ".join(f"{pointer}: {text}" for pointer, text in problems[:3])
    return problem(
        422, "invalid_request", detail, request_id=_request_id(request), problems=problems
    )


def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).name.lower()
    return problem(
        error.status_code,
        code,
        str(error.detail),
        request_id=_request_id(request),
        headers=error.headers,
    )


def _unexpected(request: Request, error: Exception) -> JSONResponse:
    """A defect of ours: told in the log, not to the caller."""
    log.error("unexpected", request_id=_request_id(request), exc_info=error)
    return problem(
        500,
        "internal",
        "an error on our side; the log knows it by its request_id",
        request_id=_request_id(request),
    )
