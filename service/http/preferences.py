"""Reads the headers Prefer, Idempotency-Key, Last-Event-ID, If-None-Match and If-Match."""

import re

from service.contract.errors import InvalidRequest

MAX_WAIT = 60
_WAIT = re.compile(r"(?:^|,|;)\s*wait\s*=\s*\"?(\d{1,6})\"?\s*(?:$|,|;)")
_BARE = r"[!#$%&'*+.^_`|~0-9A-Za-z:/-]"
_QUOTED = r'(?:[ !#-\[\]-~]|\\["\\])'
IDEMPOTENCY_KEY = f'^(?:"{_QUOTED}{{1,255}}"|{_BARE}{{1,255}})$'


def wait_seconds(prefer: str | None) -> int | None:
    """N of `Prefer: wait=N` (RFC 7240), at most MAX_WAIT; None without it."""
    found = _WAIT.search(prefer or "")
    return min(int(found[1]), MAX_WAIT) if found else None


def idempotency_key(header: str | None) -> str | None:
    """The key: a quoted string (structured field) or a bare token, up to 255 characters."""
    if header is None:
        return None
    text = header.strip()
    if not re.fullmatch(IDEMPOTENCY_KEY, text):
        raise InvalidRequest(
            "Idempotency-Key: expected a quoted string or a token of 1 to 255 characters"
        )
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def event_number(last_event_id: str | None) -> int:
    """The number of the last event; 0, so that all events are sent, where it is not a number."""
    found = re.fullmatch(r"[0-9]{1,18}", last_event_id or "")
    return int(found[0]) if found else 0


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether If-None-Match names this ETag (weak comparison, RFC 9110)."""
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags


def allows(if_match: str | None, etag: str) -> bool:
    """Whether If-Match names this ETag (strong comparison, RFC 9110), or is not there."""
    tags = [tag.strip() for tag in (if_match or "*").split(",")]
    return "*" in tags or etag in tags
