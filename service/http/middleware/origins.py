"""Origins: refusal of requests to other hosts, and of changes by pages of other sites.

Any page may let a browser send requests to this machine: by a form, by a script, or after the
page's own name has been given this machine's address (DNS rebinding). What is asked under a name
that may be anybody's is refused, and so is every change that a page of another site asks for.
"""

import ipaddress
import socket
from collections.abc import Collection
from urllib.parse import urlsplit

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.contract.errors import ForeignOrigin, RequestRefused, UnknownHost
from service.http import problems

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Answers are data: a browser shall neither guess another type nor let anything in them act.
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
)


class OriginCheck:
    """Check of origins. `hosts` are further names of this service; those without a dot and
    addresses are allowed always, since no page of another site can have such a name.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._hosts = {socket.gethostname().lower(), *(host.lower() for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                missing = [(name, text) for name, text in _HEADERS if name not in given]
                message["headers"] = [*message["headers"], *missing]
            await send(message)

        answer = self._refusal(Request(scope))
        await (answer or self._app)(scope, receive, guarded)

    def _refusal(self, request: Request) -> ASGIApp | None:
        hosts = request.headers.getlist("host")
        if malformed := [host for host in hosts if _netloc(f"//{host}") is None]:
            return problems.answer_refusal(
                request, RequestRefused(f"Host: expected a name, found {malformed[0]!r:.100}")
            )
        foreign = [host for host in hosts if not self._is_ours(host)]
        if foreign:
            return problems.answer_refusal(
                request,
                UnknownHost(
                    f"expected a request to a name of this service, found {foreign[0]!r:.100}; its "
                    "operator names it in PRESCORE_HOSTS if it is one"
                ),
            )
        if request.method not in SAFE_METHODS and _is_of_another_site(request):
            origin = request.headers.get("origin", "another site")
            return problems.answer_refusal(
                request,
                ForeignOrigin(
                    "expected a request of a program or of a page of this service, found one of "
                    f"{origin!r:.100}"
                ),
            )
        return None

    def _is_ours(self, host: str) -> bool:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        is_here = "." not in name or name.endswith(".localhost")
        return is_here or name in self._hosts or _is_address(name)


def _is_of_another_site(request: Request) -> bool:
    origins, host = request.headers.getlist("origin"), request.headers.get("host")
    if origins:
        return any(_netloc(each) in (None, "") or _netloc(each) != host for each in origins)
    return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _netloc(url: str) -> str | None:
    """Host and port of a URL; None where a bracket makes it none."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
