"""Large uploads whose parts go to the object store itself, where the service offers that.

The service tells for each part a URL of the store, which takes the bytes and needs no key. A few
parts are sent at a time. Where the store cannot be reached from here, the service gets the bytes.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event, Lock

import httpx

from prescore import plain_text
from prescore.errors import PrescoreClientError, Refused, Unreachable
from prescore.files.bodies import Body
from prescore.http.addresses import build_client_options, find_networks, is_private
from prescore.http.answers import ERROR_BYTES, build_foreign_error
from prescore.http.retries import Backoff
from prescore.http.transport import CallStopped, HttpConnection, HttpRequest, Transport
from prescore.models.uploads import UploadPart, UploadParts

AT_ONCE = 3
_STORE_SECONDS = 120.0  # the service puts the parts together before it answers
_NOT_OFFERED = (404, 405, 409)  # by an older service; by this one
_TRIES = 3  # in which no part is taken, before the service gets the file
_AGAIN = 3  # times as many bytes as the file has are sent at most
_REFUSED = 410  # the upload tells why

Report = Callable[[int, int], None]
_log = logging.getLogger("prescore")


def send_parts(transport: Transport, place: str, body: Body, report: Report) -> bool:
    """Send the parts of the upload at `place` to the store. Returns False where the service is to
    get them instead.
    """
    way = _PartAttempts(transport.address.patience)
    while (state := _fetch_missing(transport, place)) is not None:
        if state.complete:
            return True
        _check_parts(transport.url, state, body)
        refusal = _find_refusal(transport.url, state.parts)
        if refusal is not None:
            _log.warning("the service told of %s; the file is sent to the service", refusal)
            return False
        sending = _PartSender(transport, body, state, report)
        failed = sending.failure()
        way.came(sending.taken)
        if way.sent > _AGAIN * body.size:
            raise build_foreign_error(transport.url, "the same parts are asked for again and again")
        if failed is not None:
            if way.is_closed(sending):
                reason = plain_text.line(str(failed).partition("\n")[0])
                _log.warning("%s; the file is sent to the service", reason)
                return False
            transport.sleep(way.after(failed))
    return False


def _fetch_missing(transport: Transport, place: str) -> UploadParts | None:
    """Fetch the list of parts that the store lacks; None where the service does not offer it."""
    try:
        request = HttpRequest("POST", f"{place}/parts", hold=_STORE_SECONDS)
        return transport.send(request).parsed(UploadParts)
    except Refused as error:
        if error.status in _NOT_OFFERED:
            return None
        if error.status == _REFUSED:
            return UploadParts(length=0, staged=0, complete=True, parts=[])
        raise


class _PartAttempts:
    """Attempts to send parts to the store. Patience begins anew whenever a part was taken."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._backoff = Backoff(self._patience)
        self._has_led_there = False
        self.sent = 0
        self._left = _TRIES

    def came(self, size: int) -> None:
        """So many bytes were taken."""
        self.sent += size
        if size:
            self._has_led_there = True
            self._backoff = Backoff(self._patience)

    def is_closed(self, sending: "_PartSender") -> bool:
        """True where no part ever reached the store, as far as can be told."""
        self._left -= 1
        return not self._has_led_there and (sending.is_away or self._left <= 0)

    def after(self, error: PrescoreClientError) -> float:
        return self._backoff.after(error)


def _check_parts(service: str, state: UploadParts, body: Body) -> None:
    if not state.parts:
        raise build_foreign_error(service, "expected parts to send, found none")
    if any(part.offset + part.bytes > body.size for part in state.parts):
        raise build_foreign_error(service, f"expected parts of {body.size} bytes")


def _find_refusal(service: str, parts: Sequence[UploadPart]) -> str | None:
    """Why no part is sent to the URLs that the service at this URL told; None: they are. They have
    to be as private as the service's own, else others could read what is sent, and on no network
    that the service is not on, else it could let this machine write to what it cannot reach.
    """
    if not all(_is_as_private(service, part) for part in parts):
        return "a store without https"
    hosts = {httpx.URL(part.url).host for part in parts}
    if set().union(*map(find_networks, hosts)) - find_networks(httpx.URL(service).host):
        return "a store on a private address, and is on no such address itself"
    return None


def _is_as_private(service: str, part: UploadPart) -> bool:
    try:
        url = httpx.URL(part.url)
    except httpx.InvalidURL:
        return False
    is_web = url.scheme in ("http", "https") and url.host and not url.userinfo
    return bool(is_web) and (is_private(part.url) or not is_private(service))


class _PartSender:
    """Some parts on their way, and what of the file is there."""

    def __init__(
        self, transport: Transport, body: Body, state: UploadParts, report: Report
    ) -> None:
        self._transport = transport
        self._body = body
        self._parts = state.parts
        self._report = report
        self._done = state.staged
        self._lock = Lock()
        self._stopped = Event()
        self._failed = Event()
        self.taken = 0  # bytes of whole parts
        self.is_away = False

    def failure(self) -> PrescoreClientError | None:
        """Send them all; what went wrong, if anything did: what is on its way then is sent, and
        nothing more is begun.
        """
        self._tell(0)
        queue = iter(self._parts)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                errors = list(pool.map(self._send_from, [queue] * AT_ONCE))
            except BaseException:
                self._stopped.set()
                raise
        return next((error for error in errors if error is not None), None)

    def _send_from(self, queue: Iterator[UploadPart]) -> PrescoreClientError | None:
        """Send parts over one connection; several threads take them from the same queue."""
        connection = HttpConnection(build_client_options(self._parts[0].url))
        with closing(connection), self._transport.using(connection):
            for part in queue:
                if self._failed.is_set():
                    break
                try:
                    self._send(connection, part)
                except Unreachable as error:
                    self._failed.set()
                    return error
        return None

    def _send(self, connection: HttpConnection, part: UploadPart) -> None:
        size = {"Content-Length": str(part.bytes)}
        request = HttpRequest("PUT", part.url, headers=size, body=lambda: self._bytes(part))
        place = httpx.URL(part.url).host
        try:
            with closing(connection.send(request)) as answer:
                _drain(answer)
        except (httpx.HTTPError, OSError) as error:
            self._transport.check()
            self.is_away |= isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            raise Unreachable(place, str(error) or type(error).__name__) from error
        if not answer.is_success:
            raise Unreachable(place, f"the object store answered {answer.status_code}")
        with self._lock:
            self.taken += part.bytes

    def _bytes(self, part: UploadPart) -> Iterator[bytes]:
        left = part.bytes
        for chunk in self._body.chunks(part.offset):
            if self._stopped.is_set():
                raise CallStopped("the upload was stopped")
            some = chunk[:left]
            yield some
            left -= len(some)
            self._tell(len(some))
            if not left:
                return

    def _tell(self, more: int) -> None:
        with self._lock:
            self._done += more
            self._report(self._done, self._body.size)


def _drain(answer: httpx.Response) -> None:
    """Read a short answer to its end, so that the connection can be used again."""
    left = ERROR_BYTES
    for chunk in answer.iter_raw():
        left -= len(chunk)
        if left < 0:
            return
