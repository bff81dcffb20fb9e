"""The request headers that carry wishes: Prefer, Idempotency-Key, If-None-Match."""

import re

from service.contract.errors import InvalidRequest

MAX_WAIT = 60
_WAIT = re.compile(r"(?:^|,|;)\s*wait\s*=\s*\"?(\d{1,6})\"?\s*(?:$|,|;)")
_BARE = r"[!#$%&'*+.^_`|~0-9A-Za-z:/-]"
_QUOTED = r'(?:[ !#-\[\]-~]|\\["\\])'
IDEMPOTENCY_KEY = f'^(?:"{_QUOTED}{{1,255}}"|{_BARE}{{1,255}})$'


def wait_seconds(prefer: str | None) -> int | None:
    """RFC 7240 `wait=N`, capped; None where it is not asked for."""
    found = _WAIT.search(prefer or "")
    return min(int(found[1]), MAX_WAIT) if found else None


def idempotency_key(header: str | None) -> str | None:
    """A quoted string (structured field) or a bare token, up to 255 characters."""
    if header is None:
        return None
    text = header.strip()
    if not re.fullmatch(IDEMPOTENCY_KEY, text):
        raise InvalidRequest(
            "Idempotency-Key: expected a quoted string or a token of 1 to 255 characters"
        )
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def event_number(last_event_id: str | None) -> int:
    """0 where it is none of ours: then all events are told."""
    found = re.fullmatch(r"[0-9]{1,18}", last_event_id or "")
    return int(found[0]) if found else 0


def matches(if_none_match: str | None, etag: str) -> bool:
    """Weak comparison, as RFC 9110 asks for If-None-Match."""
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags
