"""openapi.json: what FastAPI knows of the routes, and what only we know of their answers."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from service.contract.api.problems import Problem
from service.contract.api.runs import EndEvent, WorkEvent
from service.contract.api.scores import ScoresEvent
from service.contract.api.texts import MAX_LABELS
from service.contract.errors import PrescoreError, Unavailable
from service.http import problems

TAGS = [
    {"name": "evaluations", "description": "Submit, poll, listen, page through, cancel."},
    {"name": "comparisons", "description": "Two evaluations, image by image."},
    {"name": "checkpoints", "description": "Models, by the SHA-256 of their bytes."},
    {"name": "datasets", "description": "Images and their references: immutable versions."},
    {"name": "probes", "description": "Where metrics lie on a dataset."},
    {"name": "learned", "description": "Metrics that are trained here."},
    {"name": "studies", "description": "What pre-gen scores say of post-gen ones."},
    {"name": "metrics", "description": "What can be computed here, and what it means."},
    {"name": "health", "description": "For load balancers and Prometheus."},
]

HEADERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "X-Request-ID": (
        "By which the log knows this request; every answer has one.",
        {"type": "string"},
    ),
    "Location": ("Where the evaluation is found.", {"type": "string", "format": "uri-reference"}),
    "ETag": (
        "Names this state of the evaluation: send it as `If-None-Match` to hear of another one.",
        {"type": "string"},
    ),
    "Retry-After": ("Seconds after which to ask again.", {"type": "integer", "minimum": 0}),
    "Preference-Applied": (
        "`wait=N`: the seconds that were granted, where any were asked for (RFC 7240).",
        {"type": "string"},
    ),
}
_ALWAYS = ("X-Request-ID", "ETag", "Location")  # wherever they are documented

LABELS: Mapping[str, Any] = {  # a parameter for each label: no type of FastAPI's says that
    "name": "labels",
    "in": "query",
    "description": "`label.NAME=VALUE`: those with this label; several must all be there.",
    "style": "form",
    "explode": True,
    "schema": {
        "type": "object",
        "propertyNames": {"pattern": r"^label\.[^\x00]*$"},
        "additionalProperties": {"type": "string", "pattern": r"^[^\x00]*$"},
        "maxProperties": MAX_LABELS,
    },
    "example": {"label.branch": "main"},
}

_WHY: Mapping[int, str] = {
    400: "Not JSON, or a page token that is none of ours.",
    404: "There is no such thing, or what it stands on is no longer stored.",
    409: "Another request with this Idempotency-Key is on its way: ask again.",
    413: "The body is larger than is accepted.",
    415: "The body is not said to be JSON in UTF-8.",
    422: "The request cannot be meant so; `errors` says where.",
    500: "A defect on our side: the log knows it by its `request_id`.",
    503: "Not now: come back after `Retry-After` seconds.",
    507: "There is no room for it on the service's disk.",
}

_REFERENCE = "#/components/schemas/{model}"
Responses = dict[int | str, dict[str, Any]]


def headers(*names: str) -> dict[str, Any]:
    return {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names}}


def refusals(*kinds: type[PrescoreError]) -> Responses:
    """What a route answers where it raises one of these, or where the record does not answer."""
    every: list[type[PrescoreError]] = [*kinds, Unavailable]
    found: dict[int, dict[str, None]] = {}
    for kind in every:
        found.setdefault(problems.status_of(kind), {})[kind.code] = None
    return {status: _refusal(status, list(codes)) for status, codes in sorted(found.items())}


def event(name: str, data: type[BaseModel]) -> dict[str, Any]:
    """A server-sent event of this name, its data being JSON."""
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


def body(description: str, *media_types: str, required: bool = True) -> dict[str, Any]:
    """A request's body of raw bytes."""
    schema = {"type": "string", "format": "binary"}
    return {
        "requestBody": {
            "required": required,
            "description": description,
            "content": {media_type: {"schema": schema} for media_type in media_types},
        }
    }


def describe(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        license_info=app.license_info,
        routes=app.routes,
        tags=TAGS,
    )
    for method, operation in _operations(document):
        _complete(method, operation)
    components = document["components"]
    components["headers"] = {name: _header(name) for name in HEADERS}
    components["schemas"] = _schemas(components["schemas"])
    return document


def _refusal(status: int, codes: list[str]) -> dict[str, Any]:
    names = ", ".join(f"`{code}`" for code in codes)
    found: dict[str, Any] = (
        headers("Retry-After") if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    )
    schema = {"$ref": _REFERENCE.format(model=Problem.__name__)}
    return {
        **found,
        "description": f"{_WHY[status]} Code: {names}.",
        "content": {problems.MEDIA_TYPE: {"schema": schema}},
    }


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in document["paths"].values():
        yield from path.items()


def _complete(method: str, operation: Mapping[str, Any]) -> None:
    """What every route answers; FastAPI's own idea of a 422 is none of ours."""
    responses = operation["responses"]
    if "HTTPValidationError" in str(responses.get("422")):
        del responses["422"]
    responses["500"] = _refusal(500, [problems.INTERNAL])
    for response in responses.values():
        named = headers("X-Request-ID")["headers"]
        response["headers"] = {**response.get("headers", {}), **named}
        if method == "head":
            response.pop("content", None)


def _header(name: str) -> dict[str, Any]:
    description, schema = HEADERS[name]
    return {"description": description, "required": name in _ALWAYS, "schema": schema}


def _schemas(found: Mapping[str, Any]) -> dict[str, Any]:
    """With those that no route of FastAPI's names."""
    _, others = models_json_schema(
        [
            (Problem, "serialization"),
            (WorkEvent, "serialization"),
            (ScoresEvent, "serialization"),
            (EndEvent, "serialization"),
        ],
        ref_template=_REFERENCE,
    )
    every = {**found, **others["$defs"]}
    for name in ("HTTPValidationError", "ValidationError"):
        every.pop(name, None)
    return dict(sorted(every.items()))
