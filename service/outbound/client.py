"""The client for URLs that users choose: https alone, to public addresses, with bounds.

A name is looked up once, and the connection is made to an address that was judged, so that the name
cannot mean another one a moment later. No redirect is followed, no proxy or password of the
environment is used, and compressed answers are refused.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import httpcore

from service.contract.errors import UrlFailed, UrlRefused
from service.contract.settings import Settings
from service.outbound import addresses, destinations
from service.outbound.addresses import Resolve
from service.outbound.connections import PinnedBackend, RequestBudget
from service.outbound.destinations import AllowedHosts, Destination

AGENT = "Prescore"
_HEADER_BYTES = 64 << 10  # of an answer: its headers, and what comes before a body that is not read
_USUAL = (b"identity", b"")


@dataclass(frozen=True)
class OutgoingAnswer:
    status: int
    headers: Mapping[str, str]  # names in lower case


@dataclass(frozen=True)
class OutboundClient:
    """`context`: whose certificates are believed; None: those that this machine believes, or those
    in SSL_CERT_FILE. `off`: every URL is refused. `fetches`: datasets may be brought by URL.
    """

    named: AllowedHosts = field(default_factory=AllowedHosts)
    resolve: Resolve = addresses.resolve_by_system
    context: ssl.SSLContext | None = None
    off: bool = False
    fetches: bool = False  # datasets

    @classmethod
    def of(cls, settings: Settings) -> "OutboundClient":
        return cls(
            AllowedHosts.read(settings.outgoing_allow),
            off=settings.outgoing == "off",
            fetches=settings.datasets_by_url == "on",
        )

    def check(self, url: str) -> Destination:
        """UrlRefused if a URL can never be asked; nothing is looked up."""
        if self.off:
            raise UrlRefused(
                "this service asks no URLs: its operator has set PRESCORE_OUTGOING=off"
            )
        return destinations.parse_destination(url, self.named)

    def post(
        self, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> OutgoingAnswer:
        """Send a body; of the answer, only status and headers are read."""
        budget = RequestBudget(seconds, _HEADER_BYTES)
        with self._asked("POST", url, headers, body, budget) as response:
            return _answer(response)

    @contextmanager
    def fetched(
        self, url: str, headers: Mapping[str, str], most: int, seconds: float
    ) -> Iterator[Iterator[bytes]]:
        """The body of what is there: at most so many bytes, in at most so many seconds."""
        budget = RequestBudget(seconds, most + _HEADER_BYTES)
        with self._asked("GET", url, headers, b"", budget) as response:
            found = _answer(response)
            if found.status != 200:
                raise UrlFailed(f"expected the status 200, found {found.status}")
            if found.headers.get("content-encoding", "identity") != "identity":
                raise UrlFailed("expected the bytes as they are, found a Content-Encoding")
            yield _bounded(response, most)

    @contextmanager
    def _asked(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, budget: RequestBudget
    ) -> Iterator[httpcore.Response]:
        place = self.check(url)
        pinned = PinnedBackend(
            addresses.find_addresses(place, self.resolve, budget.seconds), budget
        )
        connection = httpcore.HTTPConnection(
            httpcore.Origin(b"https", place.host.encode(), place.port),
            ssl_context=self._context,
            network_backend=pinned,
        )
        own = {"Host": place.authority, "User-Agent": AGENT, "Accept-Encoding": "identity"}
        sent = [(name, text) for name, text in {**own, **headers, "Connection": "close"}.items()]
        if body:
            sent.append(("Content-Length", str(len(body))))
        request = httpcore.Request(method, _url(place), headers=sent, content=body)
        with connection, _http_errors_translated():
            response = connection.handle_request(request)
            try:
                yield response
            finally:
                response.close()

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return self.context or ssl.create_default_context()


def _url(place: Destination) -> httpcore.URL:
    host, target = place.host.encode(), place.target.encode()
    return httpcore.URL(scheme=b"https", host=host, port=place.port, target=target)


def _answer(response: httpcore.Response) -> OutgoingAnswer:
    named = ((name.decode("latin-1"), text.decode("latin-1")) for name, text in response.headers)
    return OutgoingAnswer(response.status, {name.lower(): text for name, text in named})


def _bounded(response: httpcore.Response, most: int) -> Iterator[bytes]:
    size = 0
    for chunk in response.iter_stream():
        size += len(chunk)
        if size > most:
            raise UrlFailed(f"expected at most {most} bytes, found more")
        yield chunk


@contextmanager
def _http_errors_translated() -> Iterator[None]:
    try:
        yield
    except (httpcore.ProtocolError, httpcore.NetworkError):
        raise UrlFailed("the host does not answer as HTTP is spoken") from None
