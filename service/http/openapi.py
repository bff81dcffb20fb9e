"""openapi.json: FastAPI's description of the routes, completed with headers and refusals."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from prescore.models.base import Problem
from prescore.models.runs import EndEvent, RunEvent, ScoresEvent, TaskEvent
from service.contract import errors, limits
from service.contract.errors import PrescoreError
from service.http import problems
from service.http.access import NEEDED, needs_no_key
from service.http.middleware.origins import SAFE_METHODS

HEALTH = "health"
_TAGS: Mapping[str, str] = {
    "evaluations": "Submit, poll, listen, page through, cancel.",
    "comparisons": "Two evaluations, image by image.",
    "checkpoints": "Models, by the SHA-256 of their bytes.",
    "columns": "Probabilities that somebody's own code computed, by the SHA-256 of their file.",
    "datasets": "Images and their references: immutable versions.",
    "uploads": "Files in several requests, which go on after a cut, by tus 1.0.",
    "probes": "Tests of metrics on a dataset, with captions of known quality.",
    "learned": "Metrics that are trained here.",
    "studies": "How pre-gen scores correlate with post-gen scores.",
    "metrics": "The metrics, their definitions, and whether they can be computed here.",
    "keys": "Keys, their scopes and limits.",
    "webhooks": "URLs that are told of a team's runs.",
    "search": "Anything by a part of its name.",
    "queues": "Queues of tasks, and workers.",
    "limits": "Limits of requests, files and connections.",
    "audit": "Audit trail of changes.",
    HEALTH: "For load balancers and Prometheus.",
}
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}

HEADERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "X-Request-ID": (
        "The request's id in the service's log; every answer has one.",
        _TEXT,
    ),
    "Location": (
        "The URL of the run, of the upload, or of what it became.",
        {"type": "string", "format": "uri-reference"},
    ),
    "ETag": (
        "The state of the run or the file: send it as `If-None-Match` to wait for another one.",
        _TEXT,
    ),
    "Cache-Control": ("How long it may be kept.", _TEXT),
    "Content-Location": ("The URL of what an upload became.", _TEXT),
    "Upload-Offset": (
        "Bytes of an upload that are kept for certain: the next ones belong here.",
        _COUNT,
    ),
    "Upload-Length": ("Bytes of the whole file.", _COUNT),
    "Upload-Expires": ("When an upload is deleted if no more bytes come.", _TEXT),
    "Upload-Metadata": ("As it was told at the upload's beginning.", _TEXT),
    "Tus-Resumable": ("The version of tus.", _TEXT),
    "Tus-Version": ("The versions of tus that are spoken.", _TEXT),
    "Tus-Extension": ("The extensions of tus that are spoken.", _TEXT),
    "Tus-Max-Size": ("Bytes that an upload may have.", _COUNT),
    "RateLimit": (
        "With a key: the requests that this minute leaves (`r`), and seconds until the next one.",
        _TEXT,
    ),
    "RateLimit-Policy": (
        "With a key: how many requests (`q`) it may make in a window of `w` seconds.",
        _TEXT,
    ),
    "Retry-After": ("Seconds to wait before the next request.", _COUNT),
    "Idempotency-Replayed": (
        "`true` where an earlier request with the same `Idempotency-Key` began this run.",
        {"type": "string", "const": "true"},
    ),
    "Preference-Applied": (
        "`wait=N`: the seconds that were granted, if the request had `Prefer: wait` (RFC 7240).",
        _TEXT,
    ),
}
_LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_RATES = ("RateLimit", "RateLimit-Policy")
_ALWAYS = ("X-Request-ID", "ETag", "Location")  # always there where they are documented
_CODES = "x-codes"  # of errors, until the document is complete
_CONSTANT = ("livez", "prometheus_metrics", "get_limits", "discover_uploads")  # never unavailable
STORED = errors.NotFound, errors.BlobMissing, errors.BlobDamaged, errors.StoreUnavailable

LABELS: Mapping[str, Any] = {  # a parameter for each label, which no type of FastAPI can describe
    "name": "labels",
    "in": "query",
    "description": "`label.NAME=VALUE`: only runs with this label, or with all of several.",
    "style": "form",
    "explode": True,
    "schema": {
        "type": "object",
        "propertyNames": {"pattern": r"^label\.[^\x00]*$"},
        "additionalProperties": {"type": "string", "pattern": r"^[^\x00]*$"},
        "maxProperties": limits.LABELS,
    },
    "example": {"label.branch": "main"},
}

_WHY: Mapping[int, str] = {
    400: "The body is not JSON, or the cursor is not from this service.",
    401: "There is no key, or not a valid one.",
    403: "The key lacks the scope that is needed, or a page of another site asks for a change.",
    404: "Not found, or its data is no longer stored.",
    408: "The request did not arrive in time; see `/v1/limits`.",
    409: "It conflicts with something that the error names; it may succeed later.",
    410: "The upload was refused before, and its bytes are deleted.",
    412: "It has changed since the `ETag` in `If-Match`, or this version of tus is not supported.",
    413: "The body is too large.",
    415: "The Content-Type is not JSON in UTF-8, or there is a Content-Encoding.",
    421: "The request names a host that is not this service; see `PRESCORE_HOSTS`.",
    422: "The request is wrong; `errors` says where.",
    429: "The key or its team has used up a limit; see `/v1/me`.",
    431: "The header is too long; see `/v1/limits`.",
    500: "An error of the service, which is in its log with the `request_id`.",
    503: "Not available now: try again after `Retry-After` seconds.",
    507: "The service's disk is full.",
}

_KEY = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "psk_{id}_{secret}",
    "description": "A key, made by `prescore keys create`. Where no key was ever made, programs on "
    "the service's own machine need none.",
}
_REFERENCE = "#/components/schemas/{model}"
Responses = dict[int | str, dict[str, Any]]


def describe_headers(*names: str) -> dict[str, Any]:
    return {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names}}


def describe_links(field: str, *operations: str) -> dict[str, Any]:
    """Links to operations on what an answer is about: its `field` is their parameter."""
    parameters = {field: f"$response.body#/{field}"}
    return {"links": {name: {"operationId": name, "parameters": parameters} for name in operations}}


def describe_refusals(*kinds: type[PrescoreError]) -> Responses:
    """The answers of a route that may raise these errors, beside those of every such route."""
    found: Responses = {}
    for kind in kinds:
        _add_refusal(found, kind)
    return found


def _add_refusal(responses: Responses, kind: type[PrescoreError]) -> None:
    status = problems.find_status(kind)
    codes = responses.setdefault(str(status), {}).setdefault(_CODES, [])
    if kind.code not in codes:
        codes.append(kind.code)


def describe_storing(
    model: type[BaseModel], new: str, links: dict[str, Any], *kinds: type[PrescoreError]
) -> Responses:
    """The answers of a route that stores a file: 200 if it was there already, 201 if it is new."""
    return {
        "200": links,
        "201": {"model": model, "description": new, **links},
        **describe_refusals(errors.BodyTooLarge, errors.StoreUnavailable, errors.DiskFull, *kinds),
    }


def describe_event(name: str, data: type[BaseModel]) -> dict[str, Any]:
    """The schema of a server-sent event with JSON data."""
    return {
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {
            "id": {"type": "string", "pattern": "^[0-9]+$"},
            "event": {"const": name},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {"$ref": _REFERENCE.format(model=data.__name__)},
            },
        },
    }


def describe_body(description: str, *media_types: str) -> dict[str, Any]:
    """The description of a request body of raw bytes."""
    schema = {"type": "string", "format": "binary"}
    return {
        "requestBody": {
            "required": True,
            "description": description,
            "content": {media_type: {"schema": schema} for media_type in media_types},
        }
    }


# Of deletions: their status, and their answers.
DELETED: Mapping[str, Any] = {
    "status_code": 204,
    "response_class": Response,
    "response_description": "It is deleted.",
    "responses": describe_refusals(errors.NotFound, errors.Conflict),
}


def build_document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        license_info=app.license_info,
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in _TAGS.items()],
    )
    for path, method, operation in _operations(document):
        _complete(path, method, operation)
    components = document["components"]
    components["securitySchemes"] = {"key": _KEY}
    document["security"] = [{"key": []}, {}]
    components["headers"] = {name: _header(name) for name in HEADERS}
    components["schemas"] = _schemas(components["schemas"])
    return document


def _describe_refusal(status: int, codes: list[str]) -> dict[str, Any]:
    names = ", ".join(f"`{code}`" for code in sorted(codes))
    return {
        **(describe_headers("Retry-After") if status in _LATER else {}),
        "description": f"{_WHY[status]} Code: {names}.",
        "content": {
            problems.MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model=Problem.__name__)}}
        },
    }


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield path, method, operation


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    """Add what every route answers; FastAPI's own 422, which is never sent, is removed."""
    responses = operation["responses"]
    if "HTTPValidationError" in str(responses.get("422")):
        del responses["422"]
    is_free = needs_no_key(method.upper(), path)
    for kind in _find_usual_refusals(method, operation, is_free=is_free):
        _add_refusal(responses, kind)
    responses["500"] = {_CODES: [problems.INTERNAL]}
    if is_free:
        operation["security"] = []
    if (needed := NEEDED.get(operation["operationId"])) is not None:
        told = operation.get("description", "")
        operation["description"] = f"{told}\n\nScope: `{needed}`.".strip()
    always = ("X-Request-ID",) if is_free else ("X-Request-ID", *_RATES)
    for status, response in responses.items():
        if _CODES in response:
            response.update(_describe_refusal(int(status), response.pop(_CODES)))
        headers = describe_headers(*always)["headers"]
        response["headers"] = {**response.get("headers", {}), **headers}
        if method == "head":
            response.pop("content", None)


def _find_usual_refusals(
    method: str, operation: Mapping[str, Any], *, is_free: bool
) -> Iterator[type[PrescoreError]]:
    """The errors of all routes like this one."""
    yield from (errors.SlowRequest, errors.UnknownHost, errors.LongHeader)
    if not is_free:
        yield from (errors.Unauthorized, errors.LimitReached)
    if method.upper() not in SAFE_METHODS or operation["operationId"] in NEEDED:
        yield from (errors.Forbidden, errors.ForeignOrigin)
    if HEALTH not in operation["tags"]:
        yield errors.InvalidRequest  # the query may have unknown parameters
    if operation["operationId"] not in _CONSTANT:
        yield errors.ServiceUnavailable
    if "application/json" in operation.get("requestBody", {}).get("content", {}):
        yield from (errors.MalformedJson, errors.BodyTooLarge, errors.UnsupportedMedia)


def _header(name: str) -> dict[str, Any]:
    description, schema = HEADERS[name]
    return {"description": description, "required": name in _ALWAYS, "schema": schema}


def _schemas(found: Mapping[str, Any]) -> dict[str, Any]:
    """The schemas, with those that no route names."""
    _, others = models_json_schema(
        [
            (Problem, "serialization"),
            (RunEvent, "serialization"),
            (TaskEvent, "serialization"),
            (ScoresEvent, "serialization"),
            (EndEvent, "serialization"),
        ],
        ref_template=_REFERENCE,
    )
    every = {**found, **others["$defs"]}
    for name in ("HTTPValidationError", "ValidationError"):
        every.pop(name, None)
    return dict(sorted(every.items()))
