"""Server-sent events, parsed as the standard says and resumed after a lost connection."""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prescore.errors import PrescoreClientError, Unreachable
from prescore.http import bounds
from prescore.http.addresses import Address
from prescore.http.answers import not_prescore
from prescore.http.retries import Backoff, passes
from prescore.http.steps import Item, Open, Read, Request, Steps
from prescore.models import Event

if TYPE_CHECKING:
    import httpx

LAST = "end"  # a run's last event
RECONNECT_SECONDS = 1.0  # until the service sends `retry`
QUIET_SECONDS = 60.0  # without a byte, not even a comment: then the connection counts as lost


# httpx-sse 0.4.3 would save 30 lines and takes 1.2 times as long, but it makes an event of a block
# without data: each comment that keeps the connection alive would be an event.
class Parser:
    """Bytes to events. Lines end only at CR, LF or CRLF: a caption may contain U+2028.

    An event is complete with the empty line after it; an incomplete one is dropped.
    """

    def __init__(self, retry: float = RECONNECT_SECONDS) -> None:
        self.retry = retry
        self.received = False
        self._rest: list[bytes] = []  # pieces of a line whose end has not come
        self._held = 0  # bytes of it, and of the lines of an event whose end has not come
        self._after_cr = False
        self._begin()

    def feed(self, chunk: bytes) -> Iterator[tuple[str, str, str]]:
        """Every event that this chunk completes: its id, its name, its data."""
        self.received = True
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        self._held += len(chunk)
        *lines, rest = re.split(rb"\r\n|\n|\r", chunk)
        if lines:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest = []
        self._rest.append(rest)
        for line in lines:
            if line:
                self._field(line.decode("utf-8", "replace"))
                continue
            if self._data:
                yield self._id, self._name, "\n".join(self._data)
            self._begin()
            self._held = len(rest)
        if self._held > bounds.EVENT_BYTES:
            expected = f"expected events of at most {bounds.EVENT_BYTES} bytes"
            raise bounds.TooMuch(f"{expected}, found a longer one")

    def _begin(self) -> None:
        self._id = ""
        self._name = "message"
        self._data: list[str] = []

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and re.fullmatch("[0-9]{1,9}", value):
            self.retry = int(value) / 1000


def heard(address: Address, path: str, last: str | None) -> Steps[None]:
    """Each event once and in order, until `end`, over as many connections as it takes."""
    backoff = Backoff(address.patience)
    listening = _Listening(address, path, last)
    while True:
        try:
            return (yield from listening.connection())
        except PrescoreClientError as error:
            if not passes(error):
                raise
            if listening.parser.received:  # `patience` bounds the time without a byte, not the run
                backoff = Backoff(address.patience)
            wait = backoff.after(error, at_least=listening.parser.retry)
        yield wait


class _Listening:
    def __init__(self, address: Address, path: str, last: str | None) -> None:
        self.parser = Parser()
        self._address = address
        self._path = path
        self._last = last

    def connection(self) -> Steps[None]:
        """The new events of one connection, until `end`; none if the answer is 204."""
        self.parser = Parser(self.parser.retry)
        response: httpx.Response = yield Open(self._request(), most=float("inf"))
        if response.status_code == 204:
            return
        found = response.headers.get("Content-Type", "")
        if not found.startswith("text/event-stream"):
            raise not_prescore(self._address.url, f"expected events, found {found!r:.100}")
        while (chunk := (yield Read())) is not None:
            for event in self._events(chunk):
                if not _seen(event.id, self._last):
                    self._last = event.id or self._last
                    yield Item(event)
                if event.name == LAST:
                    return
        raise Unreachable(self._address.url, "the stream of events ended before the run did")

    def _request(self) -> Request:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._last is not None:
            headers["Last-Event-ID"] = self._last
        return Request("GET", self._path, headers=headers, hold=QUIET_SECONDS)

    def _events(self, chunk: bytes) -> Iterator[Event]:
        try:
            for id_, name, data in self.parser.feed(chunk):
                bounds.check_structure(data.encode("utf-8", "replace"))
                yield Event(id=id_, name=name, data=json.loads(data))
        except bounds.TooMuch as error:
            raise not_prescore(self._address.url, str(error)) from None
        except (ValueError, RecursionError):
            what = f"expected an event's data in JSON, found {data!r:.60}"
            raise not_prescore(self._address.url, what) from None


def _seen(id_: str, last: str | None) -> bool:
    if last is None or not id_:
        return False
    if id_.isdecimal() and last.isdecimal():
        return int(id_) <= int(last)
    return id_ == last
