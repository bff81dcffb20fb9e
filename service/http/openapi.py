"""openapi.json: FastAPI's description of the routes, completed with headers and refusals."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from prescore.models.base import Problem
from prescore.models.runs import EndEvent, RunEvent, ScoresEvent, TaskEvent
from service.contract import limits
from service.contract.errors import (
    Forbidden,
    ForeignOrigin,
    InvalidRequest,
    LimitReached,
    LongHeader,
    PrescoreError,
    ServiceUnavailable,
    SlowRequest,
    Unauthorized,
    UnknownHost,
)
from service.http import problems
from service.http.access import NEEDED, needs_no_key
from service.http.middleware.origins import SAFE_METHODS

HEALTH = "health"
TAGS = [
    {"name": "evaluations", "description": "Submit, poll, listen, page through, cancel."},
    {"name": "comparisons", "description": "Two evaluations, image by image."},
    {"name": "checkpoints", "description": "Models, by the SHA-256 of their bytes."},
    {
        "name": "columns",
        "description": "Probabilities that somebody's own code computed, by the SHA-256 of their "
        "file.",
    },
    {"name": "datasets", "description": "Images and their references: immutable versions."},
    {
        "name": "uploads",
        "description": "Files in several requests, which go on after a cut, by tus 1.0.",
    },
    {
        "name": "probes",
        "description": "Tests of metrics on a dataset, with captions of known quality.",
    },
    {"name": "learned", "description": "Metrics that are trained here."},
    {"name": "studies", "description": "How pre-gen scores correlate with post-gen scores."},
    {
        "name": "metrics",
        "description": "The metrics, their definitions, and whether they can be computed here.",
    },
    {"name": "keys", "description": "Who asks, and what they may."},
    {"name": "webhooks", "description": "URLs that are told of a team's runs."},
    {"name": "queues", "description": "What waits to be computed, and who works."},
    {"name": "limits", "description": "How much requests, files and connections may hold."},
    {"name": "audit", "description": "Who changed what, and when."},
    {"name": HEALTH, "description": "For load balancers and Prometheus."},
]

HEADERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "X-Request-ID": (
        "The request's id in the service's log; every answer has one.",
        {"type": "string"},
    ),
    "Location": (
        "The URL of the run, of the upload, or of what it became.",
        {"type": "string", "format": "uri-reference"},
    ),
    "ETag": (
        "The state of the run or the file: send it as `If-None-Match` to wait for another one.",
        {"type": "string"},
    ),
    "Cache-Control": ("How long it may be kept.", {"type": "string"}),
    "Content-Location": ("The URL of what an upload became.", {"type": "string"}),
    "Upload-Offset": (
        "Bytes of an upload that are kept for certain: the next ones belong here.",
        {"type": "integer", "minimum": 0},
    ),
    "Upload-Length": ("Bytes of the whole file.", {"type": "integer", "minimum": 0}),
    "Upload-Expires": ("When an upload is deleted if no more bytes come.", {"type": "string"}),
    "Upload-Metadata": ("As it was told at the upload's beginning.", {"type": "string"}),
    "Tus-Resumable": ("The version of tus.", {"type": "string"}),
    "Tus-Version": ("The versions of tus that are spoken.", {"type": "string"}),
    "Tus-Extension": ("The extensions of tus that are spoken.", {"type": "string"}),
    "Tus-Max-Size": ("Bytes that an upload may have.", {"type": "integer", "minimum": 0}),
    "RateLimit": (
        "With a key: the requests that this minute leaves (`r`), and seconds until the next one.",
        {"type": "string"},
    ),
    "RateLimit-Policy": (
        "With a key: how many requests (`q`) it may make in a window of `w` seconds.",
        {"type": "string"},
    ),
    "Retry-After": ("Seconds to wait before the next request.", {"type": "integer", "minimum": 0}),
    "Idempotency-Replayed": (
        "`true` where an earlier request with the same `Idempotency-Key` began this run.",
        {"type": "string", "const": "true"},
    ),
    "Preference-Applied": (
        "`wait=N`: the seconds that were granted, if the request had `Prefer: wait` (RFC 7240).",
        {"type": "string"},
    ),
}
_LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_RATES = ("RateLimit", "RateLimit-Policy")
_ALWAYS = ("X-Request-ID", "ETag", "Location")  # always there where they are documented

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
    403: "The key has not the scope that this needs; or a page of another site asks for a change.",
    404: "Not found, or its data is no longer stored.",
    408: "The request did not arrive in time; see `/v1/limits`.",
    409: "Something stands in its way, which the error names: it may go later.",
    410: "The upload was refused before, and its bytes are deleted.",
    412: "It has changed since the `ETag` in `If-Match`; or a version of tus that is not spoken "
    "here.",
    413: "The body is too large.",
    415: "The Content-Type is not JSON in UTF-8, or there is a Content-Encoding.",
    421: "The request names a host that is not this service; see `PRESCORE_HOSTS`.",
    422: "The request is wrong; `errors` says where.",
    429: "As much as the key or its team may ask for was asked for; see `/v1/me`.",
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
    """The answers of a route that may raise these errors; Unavailable is always added."""
    every: list[type[PrescoreError]] = [*kinds, ServiceUnavailable]
    found: dict[int, dict[str, None]] = {}
    for kind in every:
        found.setdefault(problems.find_status(kind), {})[kind.code] = None
    return {status: _refusal(status, list(codes)) for status, codes in sorted(found.items())}


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


def build_document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        license_info=app.license_info,
        routes=app.routes,
        tags=TAGS,
    )
    for path, method, operation in _operations(document):
        _complete(path, method, operation)
    components = document["components"]
    components["securitySchemes"] = {"key": _KEY}
    document["security"] = [{"key": []}, {}]
    components["headers"] = {name: _header(name) for name in HEADERS}
    components["schemas"] = _schemas(components["schemas"])
    return document


def _refusal(status: int, codes: list[str]) -> dict[str, Any]:
    names = ", ".join(f"`{code}`" for code in codes)
    found: dict[str, Any] = describe_headers("Retry-After") if status in _LATER else {}
    schema = {"$ref": _REFERENCE.format(model=Problem.__name__)}
    return {
        **found,
        "description": f"{_WHY[status]} Code: {names}.",
        "content": {problems.MEDIA_TYPE: {"schema": schema}},
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
    if HEALTH not in operation["tags"]:
        wrong = InvalidRequest  # whose query has unknown parameters
        responses.setdefault("422", _refusal(problems.find_status(wrong), [wrong.code]))
    always: list[type[PrescoreError]] = [SlowRequest, UnknownHost, LongHeader]
    is_free = needs_no_key(method.upper(), path)
    if is_free:
        operation["security"] = []
    else:
        always += [Unauthorized, LimitReached]
    for kind in always:
        status = problems.find_status(kind)
        responses[str(status)] = _refusal(status, [kind.code])
    needed = NEEDED.get(operation["operationId"])
    if method.upper() not in SAFE_METHODS or needed is not None:
        responses["403"] = _refusal(403, [Forbidden.code, ForeignOrigin.code])
    if needed is not None:
        told = operation.get("description", "")
        operation["description"] = f"{told}\n\nScope: `{needed}`.".strip()
    responses["500"] = _refusal(500, [problems.INTERNAL])
    for response in responses.values():
        always_there = ("X-Request-ID",) if is_free else ("X-Request-ID", *_RATES)
        named = describe_headers(*always_there)["headers"]
        response["headers"] = {**response.get("headers", {}), **named}
        if method == "head":
            response.pop("content", None)


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
