"""Errors as application/problem+json (RFC 9457): the only table of errors and HTTP statuses."""

import errno
import uuid
from collections.abc import Collection, Container, Mapping, Sequence
from http import HTTPMethod, HTTPStatus
from typing import Any

import sqlalchemy as sa
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match

from prescore.models.base import FieldError, Problem
from prescore.plain_text import quoted
from service.contract import errors, limits, wording
from service.contract.formats import strict_json
from service.http import paths

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"
INTERNAL = "internal"

STATUS: Mapping[type[errors.PrescoreError], int] = {
    errors.InvalidCheckpoint: 422,
    errors.InvalidBundle: 422,
    errors.ColumnsRefused: 422,
    errors.CaptionsRefused: 422,
    errors.UnknownMetric: 422,
    errors.AssetRefused: 422,
    errors.InvalidRequest: 422,
    errors.UrlRefused: 422,
    errors.InvalidSetting: 500,
    errors.InvalidBackup: 422,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.UploadRefused: 410,
    errors.UnsupportedVersion: 412,
    errors.PreconditionFailed: 412,
    errors.DigestMismatch: 422,
    errors.BodyTooLarge: 413,
    errors.MalformedJson: 400,
    errors.UnsupportedMedia: 415,
    errors.InvalidCursor: 400,
    errors.UnknownHost: 421,
    errors.ForeignOrigin: 403,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.SlowRequest: 408,
    errors.LongHeader: 431,
    errors.LimitReached: 429,
    errors.Overloaded: 503,
    errors.ServiceUnavailable: 503,
    errors.DiskFull: 507,
    errors.RequestRefused: 400,
    errors.StoreUnavailable: 503,
    errors.RunFailed: 404,  # in a request: a stored object is missing or damaged
}
RETRY_LATER = {"Retry-After": "5"}
RECORD_ERRORS = sa.exc.OperationalError, sa.exc.TimeoutError


def install_handlers(app: FastAPI) -> None:
    app.add_exception_handler(errors.PrescoreError, answer_refusal)
    for record_error in RECORD_ERRORS:
        app.add_exception_handler(record_error, answer_record_error)
    app.add_exception_handler(OSError, _disk_full)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def find_status(kind: type[errors.PrescoreError]) -> int:
    return next(STATUS[parent] for parent in kind.__mro__ if parent in STATUS)


def make_problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    places: Sequence[tuple[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    text = write_problem(status, code, detail, _request_id(request), places)
    return Response(text, status, dict(headers or {}), media_type=MEDIA_TYPE)


def write_problem(
    status: int,
    code: str,
    detail: str,
    request_id: str,
    places: Sequence[tuple[str, str]] = (),
) -> str:
    """Details are plain text, whatever of a request they repeat; pointers are as RFC 6901 says."""
    at = [FieldError(pointer=pointer, detail=quoted(text)) for pointer, text in places]
    found = Problem(
        type=f"urn:prescore:problem:{code}",
        title=HTTPStatus(status).phrase,
        code=code,
        status=status,
        detail=quoted(detail),
        request_id=request_id,
        errors=at,
    )
    return found.model_dump_json() + "\n"


def _request_id(request: Request) -> str:
    return str(getattr(request.state, "request_id", "")) or uuid.uuid4().hex


def answer_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.PrescoreError)
    places = getattr(error, "problems", ())
    if not places and error.pointer is not None:
        places = [(error.pointer, error.detail)]
    status = find_status(type(error))
    headers = RETRY_LATER if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    if isinstance(error, errors.Unauthorized):
        headers = {"WWW-Authenticate": "Bearer"}
    if isinstance(error, errors.OffsetMismatch):
        headers = {"Upload-Offset": str(error.offset)}
    if isinstance(error, errors.Overloaded) and error.retry_after is not None:
        headers = {"Retry-After": str(error.retry_after)}
    return make_problem(request, status, error.code, error.detail, places, headers)


def answer_record_error(request: Request, error: Exception) -> Response:
    """The answer to an error of RECORD_ERRORS: the database is away, or no connection is free."""
    is_busy = isinstance(error, sa.exc.TimeoutError)
    if is_busy:
        log.error("the record's connections are all in use", error=str(error))
    else:
        log.error("the record is away", error=str(error))
    state = "is busy" if is_busy else "does not answer"
    return answer_refusal(request, errors.ServiceUnavailable(f"the database {state}; try again"))


def _disk_full(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        raise error
    return answer_refusal(request, errors.DiskFull("the service's disk is full; tell its operator"))


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    places = [
        (_place(found, error.body), wording.describe_field_error(found, _siblings(request, found)))
        for found in error.errors()[: limits.PROBLEMS]
    ]
    detail = "; ".join(f"{pointer or 'the body'}: {text}" for pointer, text in places[:3])
    invalid = errors.InvalidRequest
    return make_problem(request, find_status(invalid), invalid.code, detail, places)


def _place(found: Mapping[str, Any], body: Any) -> str:
    """The JSON pointer of an error, without the types that pydantic's path contains."""
    origin, *path = found["loc"]
    if origin != "body":
        return strict_json.join_pointer(found["loc"])
    parts = []
    for part in path:
        if found["type"] == "missing" or part in _keys(body):
            parts.append(part)
            body = body[part] if part in _keys(body) else None
    return strict_json.join_pointer(parts)


def _siblings(request: Request, found: Mapping[str, Any]) -> Collection[str]:
    """The fields that the object has in which a field was found that it has not."""
    body = getattr(request.scope.get("route"), "body_field", None)
    model = None if body is None else body.field_info.annotation
    _, *path = found["loc"]
    for part in path[:-1]:
        model = _fields(model)[part].annotation if part in _fields(model) else None
    return [*_fields(model)]


def _fields(model: Any) -> Mapping[str, Any]:
    is_model = isinstance(model, type) and issubclass(model, BaseModel)
    return model.model_fields if is_model else {}


def _keys(value: Any) -> Container[Any]:
    if isinstance(value, list):
        return range(len(value))
    return value if isinstance(value, dict) else ()


def _http(request: Request, error: Exception) -> Response:
    """An error of the framework: no such route or method."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    headers = dict(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_methods(request))
    return make_problem(
        request, status, status.name.lower(), _unrouted(request, error), headers=headers
    )


def _unrouted(request: Request, error: HTTPException) -> str:
    match error.status_code:
        case HTTPStatus.NOT_FOUND:
            return paths.suggest_paths(request.url.path, request.app.state.paths)
        case HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = ", ".join(_methods(request))
            return f"{request.url.path!r:.100} takes {allowed}, found {request.method!r:.20}"
        case _:
            return str(error.detail)


def _methods(request: Request) -> list[str]:
    """All methods of a path; the framework names only those of the first matching route."""
    scopes = [dict(request.scope, method=str(method)) for method in HTTPMethod]
    return [
        scope["method"]
        for scope in scopes
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)
    ]


def _unexpected(request: Request, error: Exception) -> Response:
    """An error of the service: the log has the traceback, the caller does not."""
    name = _request_id(request)
    log.error("unexpected", exc_info=error)
    detail = "an error of the service; its log has the details under this request_id"
    return make_problem(request, 500, INTERNAL, detail, headers={"X-Request-ID": name})
