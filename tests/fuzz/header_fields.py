"""Fields of a request's header, each with the reader that it has.

A further reader is one row of READERS: the field's name; what reads it of a request; and, where a
value that was read has one way to be written, what writes it.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request
from hypothesis import strategies as st

from fuzz import refusals
from service.access import keys
from service.contract.errors import RequestRefused
from service.http import json_bodies
from service.http.middleware import authentication
from service.http.routers import request_parameters
from service.http.tus import protocol
from service.http.uploads import check_media_type
from service.runs import run_lists


@dataclass(frozen=True)
class Reader:
    """`written`: the field's value of what was read, which is then read as the same."""

    field: str
    read: Callable[[Request], Any]
    written: Callable[[Any], str | None] = lambda _: None


def _of_text(name: str, read: Callable[[str | None], Any]) -> Callable[[Request], Any]:
    return lambda request: read(request.headers.get(name))


def _pairs(found: Mapping[str, str]) -> str | None:
    if not all(name.isascii() and name.isprintable() for name in found):
        return None
    return ",".join(f"{n} {base64.b64encode(v.encode()).decode()}" for n, v in found.items())


def _of_key(request: Request) -> str | None:
    """The key that a request gives, and what is read of it."""
    given = authentication._given(request)
    read = keys.parse_key_text((given or "")[: keys.LONGEST_KEY_TEXT + 1])
    return None if read is None else given


READERS = [
    Reader(
        "Upload-Metadata",
        _of_text("upload-metadata", lambda x: protocol.read_metadata(x or "")),
        _pairs,
    ),
    Reader(
        "Upload-Metadata", _of_text("upload-metadata", lambda x: protocol.read_purpose(x or ""))
    ),
    Reader("Prefer", _of_text("prefer", request_parameters.read_wait_seconds)),
    Reader(
        "Idempotency-Key",
        _of_text("idempotency-key", request_parameters.read_idempotency_key),
        json.dumps,
    ),
    Reader("Last-Event-ID", _of_text("last-event-id", request_parameters.read_event_number), str),
    Reader(
        "If-None-Match",
        _of_text("if-none-match", partial(request_parameters.matches_etag, etag='"3"')),
    ),
    Reader("If-Match", _of_text("if-match", partial(request_parameters.allows_etag, etag='"3"'))),
    Reader("Content-Type", _of_text("content-type", lambda x: json_bodies._check_type(x or ""))),
    Reader("Content-Type", partial(check_media_type, expected=protocol.PART)),
    Reader("Content-Encoding", _of_text("x", lambda x: json_bodies._check_coding(x or ""))),
    # A parameter of the query and no field, but a text of the same kind.
    Reader(
        "cursor", _of_text("cursor", lambda x: run_lists.read_cursor("runs", x or "", float, str))
    ),
    Reader("Authorization", _of_key, lambda found: found and f"Bearer {found}"),
]
_VALUES = (
    *("1", "0", "-1", "17;a=1", "?1", "?0", '"a"', "W/", "*", "1.0.0", "wait=5", "respond-async"),
    *(",", ";", "=", '"', "\\", " ", "\t", "é", "\xff", "\x00", "a" * 300, "9" * 20, "a b", "YQ=="),
    *("kind", "Bearer", "Bearer abc", "charset=utf-8", "application/json", "multipart/x; a*0*=b"),
    *("application/offset+octet-stream", "\x85", "=?utf-8?q?x?=", "1_0", "+1", "٣", "\xb2"),
)
TEXTS = st.tuples(
    st.sampled_from(sorted({each.field for each in READERS})),
    st.lists(st.lists(st.sampled_from(_VALUES), max_size=5).map("".join), max_size=2),
).map(lambda found: "\n".join([found[0], *found[1]]).encode())


def check(data: bytes) -> None:
    """The first line names the field, each further one is a value; of no known field, of all."""
    name, *values = data.decode("latin-1").replace("\r", "").split("\n")
    named = [each for each in READERS if each.field == name]
    for reader in named or READERS:
        found = refusals.refused_or(partial(reader.read, request_with(reader.field, values)))
        if isinstance(found, RequestRefused):
            continue
        assert reader.read(request_with(reader.field, values)) == found
        text = None if found is None else reader.written(found)
        if text is not None:
            assert reader.read(request_with(reader.field, [text])) == found


def request_with(name: str, values: list[str]) -> Request:
    """As servers give it: names in small letters, bytes of Latin-1."""
    headers = [(name.lower().encode(), value.encode("latin-1", "replace")) for value in values]
    return Request({"type": "http", "headers": headers})
