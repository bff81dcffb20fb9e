"""RFC 3339 in UTC, from the record's seconds."""

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    return (
        datetime.fromtimestamp(seconds, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
