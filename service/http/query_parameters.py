"""Refusal of query parameters that a route does not have: with a misspelt filter ignored, it would
answer with everything.
"""

from collections.abc import Iterator
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute

from service.contract import wording
from service.contract.errors import InvalidRequest
from service.contract.formats import strict_json
from service.http import openapi, responses

_LABEL = "label."
_FORMAT = "format"


async def refuse_unknown_parameters(request: Request) -> None:
    """A dependency of every router. Async, since FastAPI would start a thread for a plain one."""
    if not request.scope["query_string"]:
        return
    route = request.scope["route"]
    known, labelled = _parameters(route)
    for name, value in request.query_params.multi_items():
        advice = _csv_advice(route, name, value)
        if name not in known and not (labelled and name.startswith(_LABEL)):
            if labelled and not advice:
                advice = _label_advice(name, value)
            raise InvalidRequest(
                f"{_expected([*known, *(['label.NAME'] if labelled else [])])}, "
                f"found {name!r:.100}{advice or wording.suggest_names(name, known)}",
                [(strict_json.join_pointer(["query", name]), "unknown")],
            )
        if name == _FORMAT and advice:
            found = f"found {value!r:.100}{advice}"
            raise InvalidRequest(f"{name}: {found}", [(f"/query/{name}", found)])


def _label_advice(name: str, value: str) -> str:
    """Advice on a label that was given as `label=NAME=VALUE`; else empty."""
    named, sign, said = value.partition("=")
    meant = f"{_LABEL}{named}={said}" if named and sign else f"{_LABEL}NAME=VALUE"
    return f"{wording.QUESTION} {meant!r:.200}?" if name in ("label", "labels") else ""


def _csv_advice(route: APIRoute, name: str, value: str) -> str:
    """Advice on CSV, where a parameter asks for it and the route has it; else empty."""
    offered = route.responses.get(200, {}).get("content", {})
    is_asked = any("csv" in text.lower() for text in (name, value))
    return f"; {responses.CSV_ADVICE}" if is_asked and responses.CSV_TYPE in offered else ""


def _parameters(route: APIRoute) -> tuple[tuple[str, ...], bool]:
    """The names of a route's query parameters, and whether it takes labels too."""
    described = (route.openapi_extra or {}).get("parameters", ())
    return tuple(_names(route.dependant)), openapi.LABELS in described


def _names(dependant: Any) -> Iterator[str]:
    for inner in dependant.dependencies:
        yield from _names(inner)
    yield from (field.alias for field in dependant.query_params)


def _expected(known: list[str]) -> str:
    if not known:
        return "expected no parameters in the query"
    *others, last = known
    return f"expected {', '.join(others)} or {last}" if others else f"expected {last}"
