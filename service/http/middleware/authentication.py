"""Authentication: the key of a request is checked before anything of it is read.

Where no key was ever made, the service is open to its own machine alone. A key is looked up for
each request, so one that was revoked ends at once; who listens to events is looked at again at each
sign of life.
"""

import asyncio
import ipaddress
import threading
import time
from contextlib import ExitStack

import structlog
from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.access import keys
from service.access.key_lookup import InvalidKey, KeyLookup, find_valid_key
from service.access.keys import KeyRecord
from service.contract import limits
from service.contract.askers import Asker
from service.contract.errors import LimitReached, PrescoreError, Unauthorized
from service.contract.quotas import QuotaTable
from service.engine.records import Records
from service.http import problems
from service.http.access import OPEN_HERE, needs_no_key
from service.http.dependencies import find_address
from service.http.middleware.rate_limits import RateLimiter, RequestRate, RequestsInProgress

log = structlog.get_logger()

_MAKE_ONE = (
    "`prescore keys create --team NAME --scope submit`, by the service's operator, makes one"
)
KEY_COOKIE = "prescore_key"
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


class Authentication:
    """Lets requests in that have a valid key, or need none, and notes who asks."""

    def __init__(
        self, app: ASGIApp, records: Records, allowed: QuotaTable, rates: RateLimiter
    ) -> None:
        self._app = app
        self._records = records
        self._allowed = allowed
        self._rates = rates
        self._most: dict[str, float | None] = {}  # requests a minute, by the id of a key
        self._lookup = KeyLookup(records)
        self._noting: set[str] = set()
        self._in_progress = RequestsInProgress()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or needs_no_key(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if scope["path"] in OPEN_HERE and _is_of_this_machine(request):
            await self._app(scope, receive, send)
            return
        try:
            asker = await self._asker(request)
        except PrescoreError as error:
            await problems.answer_refusal(request, error)(scope, receive, send)
            return
        except problems.RECORD_ERRORS as error:
            await problems.answer_record_error(request, error)(scope, receive, send)
            return
        scope.setdefault("state", {})["asker"] = asker
        rate = self._rate(asker)
        if rate is not None:
            scope["state"]["rate"] = rate
            send = _with_headers(send, rate)
            if rate.is_over:
                await problems.answer_refusal(request, _too_many(rate))(scope, receive, send)
                return
        with ExitStack() as held:
            try:
                held.enter_context(self._in_progress.hold(_name_shares(asker)))
            except LimitReached as error:
                await problems.answer_refusal(request, error)(scope, receive, send)
                return
            await self._app(scope, receive, send)

    def _rate(self, asker: Asker) -> RequestRate | None:
        """Count the request; returns the requests that are left, None where there is no limit."""
        if asker.key is None:
            return None
        who = asker.subject or asker.key  # jobs of one ref together, each of which has another key
        if who not in self._most:
            self._most[who] = self._allowed.of(asker).requests
        most = self._most[who]
        return None if most is None else self._rates.count(who, most, time.time())

    async def _asker(self, request: Request) -> Asker:
        """Read at once from a file, which takes less time than a thread."""
        given = _given(request)
        look = self._open if given is None else self._look
        now = time.time()
        if self._records.is_file:
            key = look(request, given, now)
        else:
            key = await asyncio.to_thread(look, request, given, now)
        address = find_address(request)
        if key is None:
            return Asker(address=address)
        self._note(key, now)
        return Asker(key.team, key.scope, key.id, address, key.labels, key.subject)

    def _open(self, request: Request, _: str | None, __: float) -> None:
        if self._lookup.are_there():
            raise Unauthorized(
                "expected a key, as Authorization: Bearer psk_…, and found none: the client takes "
                f"it from PRESCORE_KEY; {_MAKE_ONE}"
            )
        if not _is_of_this_machine(request):
            raise Unauthorized(
                "there are no keys, so that only programs on the service's own machine may ask; "
                f"{_MAKE_ONE}"
            )

    def _look(self, _: Request, given: str | None, now: float) -> KeyRecord:
        """Look up a key. The log has the reason why it is not valid, and its owner gets it."""
        try:
            return find_valid_key(given or "", self._lookup.find, now)
        except InvalidKey as error:
            raise make_key_refusal(error) from None

    def _note(self, key: KeyRecord, now: float) -> None:
        """Note the use of a key beside the request, which must not wait for a writer."""
        if not keys.is_note_due(key, now) or key.id in self._noting:
            return
        self._noting.add(key.id)

        def note() -> None:
            try:
                keys.note_key_use(self._records, key.id, now)
            except Exception as error:  # noqa: BLE001  the next request notes it
                log.warning("the use of a key was not noted", error=type(error).__name__)
            finally:
                self._noting.discard(key.id)

        threading.Thread(target=note, daemon=True).start()


def make_key_refusal(error: InvalidKey) -> Unauthorized:
    log.warning("a key was refused", key=error.key, because=str(error))
    return Unauthorized(
        f"expected a valid key, found one that {error}; ask an admin of your team for a new one: "
        f"{_MAKE_ONE}"
    )


def _name_shares(asker: Asker) -> dict[str, int]:
    """Names of the asker, with the requests that each may have at the same time."""
    if asker.key is None:  # a program on this machine
        return {}
    return {
        f"the key {asker.key}": limits.IN_PROGRESS,
        f"keys of the team {asker.team}": 2 * limits.IN_PROGRESS,
    }


def _too_many(rate: RequestRate) -> LimitReached:
    return LimitReached(
        f"expected at most {rate.most:,} requests a minute with this key; try again in "
        f"{rate.seconds} s",
        retry_after=rate.seconds,
    )


def _with_headers(send: Send, rate: RequestRate) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *rate.headers]
        await send(message)

    return told


def _given(request: Request) -> str | None:
    """The key of a request; None where there is none. A browser has it in a cookie, which pages of
    other sites cannot use (`SameSite`) and no script can read.
    """
    header = request.headers.get("authorization")
    if header is None:
        return request.cookies.get(KEY_COOKIE)
    scheme, _, text = header.partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _is_of_this_machine(request: Request) -> bool:
    """Tell whether a request comes from a program here, and through no proxy that nobody named."""
    if any(name in request.headers for name in _FORWARDED):
        return False
    address = request.client.host if request.client else ""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:  # a unix socket
        return True
