"""Parameters that several routes share, with their descriptions for openapi.json."""

import re
from typing import Annotated, Any

from fastapi import Header, Path, Query
from pydantic import AfterValidator, BeforeValidator

from prescore.models.identifiers import run_id
from service.http.preferences import IDEMPOTENCY_KEY
from service.runs import comparisons, evaluations, training
from service.runs.base import AnyKind


def _digits(value: Any) -> Any:
    """Accept only digits; pydantic would also accept ` 5`, `+5` and `1_0`."""
    if isinstance(value, str) and not re.fullmatch(r"-?[0-9]+(\.0+)?", value):
        raise ValueError(f"expected a whole number, found {value!r:.40}")
    return value


Digits = BeforeValidator(_digits)


def _number(value: Any) -> Any:
    """Accept only numbers as JSON has them; pydantic would also accept ` 5` and `1_0`."""
    if isinstance(value, str) and not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", value):
        raise ValueError(f"expected a number, found {value!r:.40}")
    return value


Number = BeforeValidator(_number)


def identity_of(kind: AnyKind) -> Any:
    return Annotated[str, _one_of(kind), _path(kind)]


def _one_of(kind: AnyKind) -> AfterValidator:
    """An id of another kind of run answers 404, not 422."""
    pattern = run_id(kind.prefix)

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise kind.missing(value)
        return value

    return AfterValidator(check)


def _path(kind: AnyKind) -> Any:
    pattern = run_id(kind.prefix)
    description = f"The `id` of the {kind.noun}."
    return Path(description=description, json_schema_extra={"pattern": pattern})


Identity = Annotated[str, _one_of(evaluations.KIND), _path(evaluations.KIND)]
ComparisonIdentity = Annotated[str, _one_of(comparisons.KIND), _path(comparisons.KIND)]
TrainingIdentity = Annotated[str, _one_of(training.KIND), _path(training.KIND)]
Cursor = Annotated[
    str | None, Query(description="The `next` of the previous page. None: the first page.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="A request with the same key and body as an earlier one is answered with that "
        "request's run. A quoted string or a bare token, up to 255 characters.",
        json_schema_extra={"pattern": IDEMPOTENCY_KEY},
        examples=['"8e03978e-40d5-43e8-bc93-6894a57f9324"'],
    ),
]
Prefer = Annotated[
    str | None,
    Header(
        description="`wait=N`: the answer may take up to N seconds, 60 at most (RFC 7240).",
        examples=["wait=30"],
    ),
]
IfNoneMatch = Annotated[str | None, Header(description="The `ETag` of an earlier answer.")]
LastEventId = Annotated[
    str | None,
    Header(description="The `id` of the last event that was received; none: send all."),
]
