"""Large uploads whose parts go to the object store itself, where the service offers that.

The service tells for each part a URL of the store, which takes the bytes and needs no key. A few
parts are sent at a time. Where the store cannot be reached from here, the service gets the bytes.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event, Lock

import httpx

from prescore import plain_text
from prescore.errors import PrescoreClientError, Refused, Unreachable
from prescore.files.reading import Body
from prescore.http import answers, bounds, retries
from prescore.http.addresses import (
    CONNECT_SECONDS,
    READ_SECONDS,
    Address,
    is_here,
    is_private,
    networks_of,
    tls,
)
from prescore.http.steps import Do, Request, Sleep, Steps
from prescore.models.stored import Part, Parts

AT_ONCE = 3
_STORE_SECONDS = 120.0  # the service puts the parts together before it answers
_NOT_OFFERED = (404, 405, 409)  # by an older service; by this one
_TRIES = 3  # in which no part is taken, before the service gets the file
_AGAIN = 3  # times as many bytes as the file has are sent at most
_REFUSED = 410  # the upload tells why

Report = Callable[[int, int], None]
_log = logging.getLogger("prescore")


def sent(address: Address, place: str, body: Body, report: Report) -> Steps[bool]:
    """Whether the store has all parts of the upload at `place`, and the service knows. Not so where
    they are to be sent to the service.
    """
    way = _Way(address)
    while (state := (yield from _asked(address, place))) is not None:
        if state.complete:
            return True
        _check(address, state, body)
        refusal: str | None = yield Do(partial(_refusal, address.url, state.parts))
        if refusal is not None:
            _log.warning("the service told of %s; the file is sent to the service", refusal)
            return False
        sending = _Sending(body, state.parts, state.staged, report)
        try:
            failed: PrescoreClientError | None = yield Do(sending.failure)
        finally:
            sending.stop()
        way.came(sending.taken)
        if way.sent > _AGAIN * body.size:
            raise answers.not_prescore(address.url, "the same parts are asked for again and again")
        if failed is not None:
            if way.is_closed(sending):
                reason = plain_text.line(str(failed).partition("\n")[0])
                _log.warning("%s; the file is sent to the service", reason)
                return False
            yield way.after(failed)
    return False


def _asked(address: Address, place: str) -> Steps[Parts | None]:
    """What is still to be sent to the store; None where the service does not offer it."""
    try:
        request = Request("POST", f"{place}/parts", hold=_STORE_SECONDS)
        answer = yield from retries.sent(address, request)
    except Refused as error:
        if error.status in _NOT_OFFERED:
            return None
        if error.status == _REFUSED:
            return Parts(complete=True)
        raise
    return answers.parsed(address.url, Parts, answer)


class _Way:
    """The way to the store. Patience begins anew whenever a part was taken."""

    def __init__(self, address: Address) -> None:
        self._patience = address.patience
        self._backoff = retries.Backoff(self._patience)
        self._has_led_there = False
        self.sent = 0
        self._left = _TRIES

    def came(self, size: int) -> None:
        """So many bytes were taken."""
        self.sent += size
        if size:
            self._has_led_there = True
            self._backoff = retries.Backoff(self._patience)

    def is_closed(self, sending: "_Sending") -> bool:
        """Whether it never led there, as far as can be told."""
        self._left -= 1
        return not self._has_led_there and (sending.is_away or self._left <= 0)

    def after(self, error: PrescoreClientError) -> Sleep:
        return self._backoff.after(error)


def _check(address: Address, state: Parts, body: Body) -> None:
    if not state.parts:
        raise answers.not_prescore(address.url, "expected parts to send, found none")
    if any(part.offset + part.bytes > body.size for part in state.parts):
        raise answers.not_prescore(address.url, f"expected parts of {body.size} bytes")


def _refusal(service: str, parts: Sequence[Part]) -> str | None:
    """Why no part is sent to the URLs that the service at this URL told; None: they are. They have
    to be as private as the service's own, else others could read what is sent, and on no network
    that the service is not on, else it could let this machine write to what it cannot reach.
    """
    if not all(_is_as_private(service, part) for part in parts):
        return "a store without https"
    hosts = {httpx.URL(part.url).host for part in parts}
    if set().union(*map(networks_of, hosts)) - networks_of(httpx.URL(service).host):
        return "a store on a private address, and is on no such address itself"
    return None


def _is_as_private(service: str, part: Part) -> bool:
    try:
        url = httpx.URL(part.url)
    except httpx.InvalidURL:
        return False
    is_web = url.scheme in ("http", "https") and url.host and not url.userinfo
    return bool(is_web) and (is_private(part.url) or not is_private(service))


class _Sending:
    """Some parts on their way, and what of the file is there."""

    def __init__(self, body: Body, parts: Sequence[Part], staged: int, report: Report) -> None:
        self._body = body
        self._parts = parts
        self._report = report
        self._done = staged
        self._lock = Lock()
        self._stopped = Event()
        self._failed = Event()
        self.taken = 0  # bytes of whole parts
        self.is_away = False

    def stop(self) -> None:
        self._stopped.set()

    def failure(self) -> PrescoreClientError | None:
        """Send them all; what went wrong, if anything did: what is on its way then is sent, and
        nothing more is begun.
        """
        here = is_here(self._parts[0].url)
        timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
        self._told(0)
        with (
            httpx.Client(verify=tls(), timeout=timeout, trust_env=not here) as http,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            try:
                found = list(pool.map(lambda part: self._failure_of(http, part), self._parts))
            except BaseException:
                self.stop()
                raise
        return next((error for error in found if error is not None), None)

    def _failure_of(self, http: httpx.Client, part: Part) -> PrescoreClientError | None:
        if self._stopped.is_set() or self._failed.is_set():
            return None
        place = httpx.URL(part.url).host
        try:
            size = {"Content-Length": str(part.bytes)}
            with http.stream("PUT", part.url, content=self._bytes(part), headers=size) as answer:
                _end_of(answer)
        except _Stopped:
            return None
        except (httpx.HTTPError, OSError) as error:
            self._failed.set()
            self.is_away |= isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            return Unreachable(place, str(error) or type(error).__name__)
        if not answer.is_success:
            self._failed.set()
            return Unreachable(place, f"the object store answered {answer.status_code}")
        with self._lock:
            self.taken += part.bytes
        return None

    def _bytes(self, part: Part) -> Iterator[bytes]:
        left = part.bytes
        for chunk in self._body.chunks(part.offset):
            if self._stopped.is_set():
                raise _Stopped
            some = chunk[:left]
            yield some
            left -= len(some)
            self._told(len(some))
            if not left:
                return

    def _told(self, more: int) -> None:
        with self._lock:
            self._done += more
            self._report(self._done, self._body.size)


def _end_of(answer: httpx.Response) -> None:
    """Read a short answer to its end, so that the connection can be used again."""
    left = bounds.ERROR_BYTES
    for chunk in answer.iter_raw():
        left -= len(chunk)
        if left < 0:
            return


class _Stopped(Exception):
    """The parts are not wanted any more."""
