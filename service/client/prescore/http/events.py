"""Server-sent events, parsed as the standard says and resumed after a lost connection."""

import json
import re
from collections.abc import Generator, Iterator

import httpx

from prescore.errors import PrescoreClientError, Unreachable
from prescore.http.answers import build_foreign_error
from prescore.http.retries import Backoff, may_pass
from prescore.http.transport import HttpRequest, Transport
from prescore.models import Event

LAST = "end"  # a run's last event
EVENT_BYTES = 8 << 20  # of an event, and of a line of it
RECONNECT_SECONDS = 1.0  # until the service sends `retry`
QUIET_SECONDS = 60.0  # without a byte, not even a comment: then the connection counts as lost


# httpx-sse 0.4.3 would save 30 lines and takes 1.2 times as long, but it makes an event of a block
# without data: each comment that keeps the connection alive would be an event.
class EventParser:
    """Bytes to events. Lines end only at CR, LF or CRLF: a caption may contain U+2028.

    An event is complete with the empty line after it; an incomplete one is dropped.
    """

    def __init__(self, retry: float = RECONNECT_SECONDS) -> None:
        self.retry = retry
        self.received = False
        self._rest: list[bytes] = []  # pieces of a line whose end has not come
        self.held = 0  # bytes of it, and of the lines of an event whose end has not come
        self._after_cr = False
        self._begin()

    def feed(self, chunk: bytes) -> Iterator[tuple[str, str, str]]:
        """Every event that this chunk completes: its id, its name, its data."""
        self.received = True
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        self.held += len(chunk)
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
            self.held = len(rest)

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


def hear_events(transport: Transport, path: str, last: str | None) -> Generator[Event, None, None]:
    """Each event once and in order, until `end`, over as many connections as it takes."""
    backoff = Backoff(transport.address.patience)
    parser = EventParser()
    while True:
        parser = EventParser(parser.retry)
        try:
            with transport.opened(_build_request(path, last)) as response:
                if response.status_code == 204:
                    return
                for event in _read_events(transport, response, parser):
                    if not _is_seen(event.id, last):
                        last = event.id or last
                        yield event
                    if event.name == LAST:
                        return
            raise Unreachable(transport.url, "the stream of events ended before the run did")
        except PrescoreClientError as error:
            if not may_pass(error):
                raise
            if parser.received:  # `patience` bounds the time without a byte, not the run
                backoff = Backoff(transport.address.patience)
            seconds = backoff.after(error, at_least=parser.retry)
        transport.sleep(seconds)


def _build_request(path: str, last: str | None) -> HttpRequest:
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if last is not None:
        headers["Last-Event-ID"] = last
    return HttpRequest("GET", path, headers=headers, hold=QUIET_SECONDS)


def _read_events(
    transport: Transport, response: httpx.Response, parser: EventParser
) -> Iterator[Event]:
    """The events of one connection."""
    content_type = response.headers.get("Content-Type", "")
    if not content_type.startswith("text/event-stream"):
        raise build_foreign_error(transport.url, f"expected events, found {content_type!r:.100}")
    for chunk in transport.pieces(response, most=float("inf")):
        for id_, name, data in parser.feed(chunk):
            try:
                yield Event(id=id_, name=name, data=json.loads(data))
            except (ValueError, RecursionError):
                what = f"expected an event's data in JSON, found {data!r:.60}"
                raise build_foreign_error(transport.url, what) from None
        if parser.held > EVENT_BYTES:
            what = f"expected events of at most {EVENT_BYTES} bytes, found a longer one"
            raise build_foreign_error(transport.url, what)


def _is_seen(id_: str, last: str | None) -> bool:
    if last is None or not id_:
        return False
    if id_.isdecimal() and last.isdecimal():
        return int(id_) <= int(last)
    return id_ == last
