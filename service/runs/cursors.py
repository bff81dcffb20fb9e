"""Page tokens: opaque, and good for nothing but the list that they came from."""

import base64
import hashlib
import json
from typing import Any

from service.contract.errors import InvalidCursor

_CHECK_BYTES = 6


def write(of: str, *position: Any) -> str:
    """A token for the list called `of`: a checksum, then the position as JSON."""
    data = json.dumps(position).encode()
    check = hashlib.sha256(of.encode() + b"\n" + data).digest()[:_CHECK_BYTES]
    return base64.urlsafe_b64encode(check + data).decode().rstrip("=")


def read(of: str, cursor: str, *kinds: type) -> list[Any]:
    """What was written; InvalidCursor where it was edited, made up, or is another list's."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        position = json.loads(text[_CHECK_BYTES:])
    except (ValueError, RecursionError):
        position = None
    if (
        isinstance(position, list)
        and write(of, *position) == cursor
        and [type(part) for part in position] == list(kinds)
        and "\\u0000" not in json.dumps(position)
    ):
        return position
    raise InvalidCursor("expected the `next` of an earlier answer of this list")
