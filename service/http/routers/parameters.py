"""The parameters that routes of evaluations share, as they are described to who writes a client."""

import re
from typing import Annotated, Any

from fastapi import Header, Path, Query
from pydantic import AfterValidator, BeforeValidator

from service.contract.api.texts import COMPARISON_ID, EVALUATION_ID, LEARNED_ID, PROBES_ID
from service.contract.errors import NotFound
from service.http.preferences import IDEMPOTENCY_KEY


def _digits(value: Any) -> Any:
    """Pydantic would take ` 5`, `+5` and `1_0` too."""
    if isinstance(value, str) and not re.fullmatch(r"-?[0-9]+(\.0+)?", value):
        raise ValueError(f"expected a whole number, found {value!r:.40}")
    return value


Digits = BeforeValidator(_digits)


def _of(pattern: str, what: str) -> AfterValidator:
    """An id of something else is not found, rather than wrong."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise NotFound(f"no {what} {value!r:.60}")
        return value

    return AfterValidator(check)


Identity = Annotated[
    str,
    _of(EVALUATION_ID, "evaluation"),
    Path(
        description="The evaluation's `id`.",
        json_schema_extra={"pattern": EVALUATION_ID},
    ),
]
ProbesIdentity = Annotated[
    str,
    _of(PROBES_ID, "probes"),
    Path(description="The probes' `id`.", json_schema_extra={"pattern": PROBES_ID}),
]
LearnedIdentity = Annotated[
    str,
    _of(LEARNED_ID, "training"),
    Path(description="The training's `id`.", json_schema_extra={"pattern": LEARNED_ID}),
]
ComparisonIdentity = Annotated[
    str,
    _of(COMPARISON_ID, "comparison"),
    Path(description="The comparison's `id`.", json_schema_extra={"pattern": COMPARISON_ID}),
]
Cursor = Annotated[
    str | None, Query(description="The `next` of the page before; opaque. None: the first page.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="The same key with the same body answers with the evaluation that the first "
        "such request made. A quoted string or a bare token, up to 255 characters.",
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
    Header(description="The `id` of the last event that was heard; none: from the first."),
]
