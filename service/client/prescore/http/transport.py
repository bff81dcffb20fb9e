"""Sends all HTTP requests, translates errors, and repeats requests that failed."""

import ipaddress
import re
import ssl
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from prescore.errors import InvalidArgument, Refused, ServiceError, Unreachable
from prescore.http import bounds
from prescore.http.retries import PASSING, Backoff, persistently
from prescore.models import Problem

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
_KEY = re.compile(r"[!-~]+")
_HINTS = {  # for answers without problem+json, such as to HEAD or from a proxy
    401: "give a key by PRESCORE_KEY or --key-file",
    403: "the key does not allow this",
    404: "not found; is this the URL of a Prescore service?",
    413: "larger than the service, or a proxy before it, accepts",
}
_CUT = (
    httpx.TimeoutException,
    httpx.NetworkError,
    httpx.RemoteProtocolError,
    httpx.ProxyError,
)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Callable[[], Iterable[bytes]] = b""  # a stream is built again for every attempt
    hold: float = 0.0  # seconds that the service may wait before it answers


class Transport:
    def __init__(self, url: str, key: str | None, patience: float) -> None:
        self.url = _plain_url(url)
        self.patience = patience
        headers = {
            "User-Agent": f"prescore-client/{version('prescore-client')}",
            "Accept-Encoding": "gzip",  # `bounds` unpacks it
        }
        if key:
            headers["Authorization"] = f"Bearer {_plain_key(key)}"
            _check_secrecy(self.url)
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            verify=_tls(),
            follow_redirects=False,
            trust_env=not _is_here(self.url),  # no proxy is on the way to this machine
        )

    def close(self) -> None:
        self._http.close()

    def send(
        self,
        request: Request,
        *,
        patience: float | None = None,
        statuses: Collection[int] = PASSING,
    ) -> httpx.Response:
        """The answer; the request is repeated after failures that may pass."""
        return self.persist(lambda: self.once(request), patience=patience, statuses=statuses)

    def persist(
        self,
        attempt: Callable[[], T],
        *,
        patience: float | None = None,
        statuses: Collection[int] = PASSING,
    ) -> T:
        allowed = self.patience if patience is None else min(patience, self.patience)
        return persistently(attempt, allowed, statuses)

    def once(self, request: Request, most: int = bounds.ANSWER_BYTES) -> httpx.Response:
        with self.translated(), self.stream(request) as response:
            return _whole(response, bounds.body(response, most))

    @contextmanager
    def stream(self, request: Request) -> Iterator[httpx.Response]:
        """An answer whose body the caller reads by `bounds`, inside `translated`."""
        response = self._http.send(self._built(request), stream=True)
        try:
            yield response if _is_right(response) else _judged(_told(response))
        finally:
            response.close()

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except _CUT as error:
            raise Unreachable(self.url, _reason(error)) from error
        except bounds.TooMuch as error:
            raise self.not_prescore(str(error)) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self.not_prescore(f"{type(error).__name__}: {error}") from error

    def backoff(self) -> Backoff:
        return Backoff(self.patience)

    def not_prescore(self, what: str) -> ServiceError:
        detail = f"{what}; is {self.url} a Prescore service?"
        return ServiceError(Problem(title="not an answer of Prescore", detail=detail))

    def parsed(self, model: type[M], response: httpx.Response) -> M:
        with self.translated(), self.understood(model):
            bounds.check_structure(response.content)
            return model.model_validate_json(response.content)

    @contextmanager
    def understood(self, model: type[BaseModel]) -> Iterator[None]:
        try:
            yield
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = "/".join(map(str, first["loc"])) or "the body"
            what = f"expected a {model.__name__}, found in {place}: {first['msg']}"
            raise self.not_prescore(what) from None

    def _built(self, request: Request) -> httpx.Request:
        return self._http.build_request(
            request.method,
            request.path,
            params=dict(request.params) or None,
            headers=dict(request.headers),
            content=request.body if isinstance(request.body, bytes) else request.body(),
            timeout=httpx.Timeout(
                READ_SECONDS, connect=CONNECT_SECONDS, read=READ_SECONDS + request.hold
            ),
        )


def segment(text: str) -> str:
    """One segment of a URL's path, quoted so that no text can lead to another path."""
    if text in ("", ".", ".."):
        raise InvalidArgument(f"expected a name or an id, found {text!r}")
    return quote(text, safe="@:")


def retry_after(response: httpx.Response) -> float | None:
    """The header Retry-After, a number or a date, as seconds from now."""
    value = response.headers.get("Retry-After", "").strip()
    if re.fullmatch("[0-9]{1,9}", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, seconds)


@cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # 40 ms, and the same for every client


def _is_right(response: httpx.Response) -> bool:
    return response.is_success or response.status_code == HTTPStatus.NOT_MODIFIED


def _told(response: httpx.Response) -> httpx.Response:
    """A refusal with its body; without one that is too long."""
    try:
        return _whole(response, bounds.body(response, bounds.ERROR_BYTES))
    except bounds.TooMuch:
        return _whole(response, b"")


def _whole(response: httpx.Response, content: bytes) -> httpx.Response:
    """The answer with its body, which is unpacked."""
    unpacked = ("content-encoding", "content-length", "transfer-encoding")
    headers = [each for each in response.headers.multi_items() if each[0] not in unpacked]
    return httpx.Response(
        response.status_code,
        headers=headers,
        content=content,
        request=response.request,
        extensions=response.extensions,
    )


def _judged(response: httpx.Response) -> httpx.Response:
    if _is_right(response):
        return response
    if response.is_client_error:
        raise Refused(_problem(response), retry_after(response))
    raise ServiceError(_problem(response), retry_after(response))


def _problem(response: httpx.Response) -> Problem:
    status = response.status_code
    try:
        bounds.check_structure(response.content)
        problem = Problem.model_validate_json(response.content)
    except (ValidationError, bounds.TooMuch):
        problem = Problem(detail=_hint(response))
    return problem.model_copy(
        update={"status": status, "title": problem.title or response.reason_phrase}
    )


def _hint(response: httpx.Response) -> str:
    if response.is_redirect:
        # A POST would become a GET, and the key would be sent to another host.
        return "a redirect, which is not followed; use the URL that it leads to"
    return _HINTS.get(response.status_code, "")


def _reason(error: httpx.HTTPError) -> str:
    return str(error) or re.sub("(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()


def _plain_url(text: str) -> str:
    """The URL without a trailing slash; a password or a query is refused, since errors show it."""
    expected = "expected a URL such as http://127.0.0.1:8000"
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, TypeError, ValueError):
        raise InvalidArgument(expected) from None
    if "@" in text:
        raise InvalidArgument(f"{expected}, found one with a user name: use a key instead")
    if url.query or url.fragment:
        raise InvalidArgument(f"{expected}, found one with a query or a fragment")
    if url.scheme not in ("http", "https") or not url.host or (url.port or 1) > 65535:
        raise InvalidArgument(f"{expected}, found {text!r:.200}")
    return str(url).rstrip("/")


def _is_here(url: str) -> bool:
    host = httpx.URL(url).host
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_secrecy(url: str) -> None:
    """Refuse to send a key where everybody on the way could read it."""
    if httpx.URL(url).scheme != "https" and not _is_here(url):
        raise InvalidArgument(
            f"expected an https:// URL, or one of this machine, for a key; found {url}: everybody "
            "on the way could read the key. Use https, or take PRESCORE_KEY and --key-file away"
        )


def _plain_key(key: str) -> str:
    key = key.strip()
    if not _KEY.fullmatch(key):  # checked here, since httpx's message would show the key
        raise InvalidArgument("expected a key of visible ASCII characters")
    return key
