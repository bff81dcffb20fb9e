"""Parameters and headers that several routes share, with their descriptions for openapi.json."""

import re
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Header, Path, Query
from pydantic import AfterValidator, BeforeValidator

from prescore.models.identifiers import run_id
from service.contract.errors import InvalidRequest, UnknownMetric
from service.contract.metrics import catalogue
from service.runs import comparisons, evaluations, training
from service.runs.run_store import AnyRunKind

MAX_WAIT = 60
_WAIT = re.compile(r"(?:^|,|;)\s*wait\s*=\s*\"?(\d{1,6})\"?\s*(?:$|,|;)")
_BARE = r"[!#$%&'*+.^_`|~0-9A-Za-z:/-]"
_QUOTED = r'(?:[ !#-\[\]-~]|\\["\\])'
IDEMPOTENCY_KEY = f'^(?:"{_QUOTED}{{1,255}}"|{_BARE}{{1,255}})$'


def read_wait_seconds(prefer: str | None) -> int | None:
    """N of `Prefer: wait=N` (RFC 7240), at most MAX_WAIT; None without it."""
    found = _WAIT.search(prefer or "")
    return min(int(found[1]), MAX_WAIT) if found else None


def read_idempotency_key(header: str | None) -> str | None:
    """The key: a quoted string (structured field) or a bare token, up to 255 characters."""
    if header is None:
        return None
    text = header.strip()
    if not re.fullmatch(IDEMPOTENCY_KEY, text):
        raise InvalidRequest(
            "Idempotency-Key: expected a quoted string or a token of 1 to 255 characters"
        )
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def read_event_number(last_event_id: str | None) -> int:
    """The number of the last event; 0, so that all events are sent, where it is not a number."""
    found = re.fullmatch(r"[0-9]{1,18}", last_event_id or "")
    return int(found[0]) if found else 0


def read_metric_names(given: str | None, parameter: str, most: int) -> list[str]:
    """The names of known metrics that a parameter has, separated by commas; none without it."""
    if given is None:
        return []
    found = list(dict.fromkeys(name.lstrip(" ") for name in given.split(",")))
    if len(found) > most:
        raise InvalidRequest(
            f"expected at most {most} metrics, found {len(found)}",
            [(f"/query/{parameter}", "too many")],
        )
    check_known_metrics(found, parameter)
    return found


def check_known_metrics(names: Iterable[str], parameter: str) -> None:
    """Raise UnknownMetric, with the parameter as its place, for a name of no metric."""
    try:
        for name in names:
            catalogue.find_metric(name)
    except UnknownMetric as error:
        error.pointer = f"/query/{parameter}"
        raise


def matches_etag(if_none_match: str | None, etag: str) -> bool:
    """Tell whether If-None-Match names this ETag (weak comparison, RFC 9110)."""
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags


def allows_etag(if_match: str | None, etag: str) -> bool:
    """Tell whether If-Match names this ETag (strong comparison, RFC 9110), or is not there."""
    tags = [tag.strip() for tag in (if_match or "*").split(",")]
    return "*" in tags or etag in tags


def _written_as(pattern: str, expected: str) -> BeforeValidator:
    """Accept only numbers that are written so; pydantic would also accept ` 5`, `+5` and `1_0`."""

    def check(value: Any) -> Any:
        if isinstance(value, str) and not re.fullmatch(pattern, value):
            raise ValueError(f"expected {expected}, found {value!r:.40}")
        return value

    return BeforeValidator(check)


Digits = _written_as(r"-?[0-9]+(\.0+)?", "a whole number")
Number = _written_as(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", "a number")


def make_identity(kind: AnyRunKind) -> Any:
    """The type of an id in a path. An id of another kind of run answers 404, not 422."""
    return Annotated[str, *_describe_identity(kind)]


def _describe_identity(kind: AnyRunKind) -> tuple[AfterValidator, Any]:
    pattern = run_id(kind.prefix)

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise kind.missing(value)
        return value

    description = f"The `id` of the {kind.noun}."
    path = Path(description=description, json_schema_extra={"pattern": pattern})
    return AfterValidator(check), path


EvaluationIdentity = Annotated[str, *_describe_identity(evaluations.KIND)]
ComparisonIdentity = Annotated[str, *_describe_identity(comparisons.KIND)]
TrainingIdentity = Annotated[str, *_describe_identity(training.KIND)]
Accept = Annotated[str | None, Header(include_in_schema=False)]
Split = Annotated[
    str | None,
    Query(max_length=100, description="By default the only split, or `test`."),
]
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
