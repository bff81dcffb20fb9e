"""Identifiers and times in answers: digests, ids of runs, and moments as RFC 3339."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainSerializer, WithJsonSchema

DATASET_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
DIGEST = r"^sha256:[0-9a-f]{64}$"
_ID = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$"
# The prefix of each kind of run's ids.
EVALUATION, COMPARISON, PROBES, LEARNED, STUDY = "ev", "cp", "pb", "ln", "st"
_IN_ID = "[A-Za-z0-9_-]{1,37}"
RUN_ID = re.compile(f"[a-z]{{2}}_{_IN_ID}")  # of any kind of run


def run_id(prefix: str) -> str:
    """The pattern of the ids of a kind of run."""
    return f"^{prefix}_{_IN_ID}$"


def _of_run(prefix: str) -> Any:
    description = "The id in the run's URL."
    return Field(json_schema_extra={"pattern": run_id(prefix)}, description=description)


def _safe(pattern: str, expected: str) -> AfterValidator:
    """A check of texts of which programs make paths, URLs and commands."""

    def check(text: str | None) -> str | None:
        if text and not re.fullmatch(pattern, text):
            raise ValueError(f"expected {expected}")
        return text

    return AfterValidator(check)


_SHA256 = {"pattern": DIGEST}
Digest = Annotated[
    str,
    Field(
        json_schema_extra=_SHA256,
        description="The SHA-256 of the bytes, as `sha256:` and 64 hex digits.",
    ),
]
SAFE_DIGEST = _safe(DIGEST, "sha256: and 64 hex digits in lower case")
OwnDigest = Annotated[Digest, SAFE_DIGEST]
# None: another version of the service has left it out.
ContentDigest = Annotated[str | None, SAFE_DIGEST, WithJsonSchema({"type": "string", **_SHA256})]

SAFE_ID = _safe(_ID, "up to 100 letters, digits, '_' and '-', a letter or a digit first")
Id = Annotated[str, SAFE_ID]
EvaluationId = Annotated[str, _of_run(EVALUATION)]
ComparisonId = Annotated[str, _of_run(COMPARISON)]
ProbesId = Annotated[str, _of_run(PROBES)]
LearnedId = Annotated[str, _of_run(LEARNED)]
StudyId = Annotated[str, _of_run(STUDY)]


def rfc3339(moment: datetime) -> str:
    """A moment in UTC, to a millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_AS_TEXT = PlainSerializer(rfc3339, when_used="json-unless-none")
_DATE_TIME = WithJsonSchema({"type": "string", "format": "date-time"})
Moment = Annotated[datetime, _AS_TEXT, _DATE_TIME]
Timestamp = Annotated[datetime | None, _AS_TEXT, _DATE_TIME]  # None: as above
