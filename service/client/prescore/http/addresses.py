"""The service's address: a checked URL, the headers of every request, and the networks of hosts."""

import ipaddress
import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import httpx

from prescore.errors import InvalidArgument

_KEY = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Address:
    """A service's URL, the seconds for which it is asked again, and headers of every request."""

    url: str
    patience: float
    headers: Mapping[str, str] = field(repr=False)  # with the key
    socket: Path | None = None  # of a service in this process

    @classmethod
    def of(cls, url: str, key: str | None, patience: float) -> Self:
        url = _check_url(url)
        headers = {
            "User-Agent": f"prescore-client/{version('prescore-client')}",
            "Accept-Encoding": "gzip",
        }
        if key:
            headers["Authorization"] = f"Bearer {check_key(key)}"
            _check_secrecy(url)
        return cls(url, patience, headers)

    @property
    def client_options(self) -> dict[str, Any]:
        """Arguments of httpx.Client."""
        options = {"base_url": self.url, "headers": self.headers, **build_client_options(self.url)}
        if self.socket is not None:
            options["transport"] = httpx.HTTPTransport(uds=str(self.socket))
        return options


def build_client_options(url: str) -> dict[str, Any]:
    """Arguments of httpx.Client for any URL: no redirect is followed, and no proxy is on the way to
    this machine.
    """
    return {
        "verify": create_tls_context(),
        "follow_redirects": False,
        "trust_env": not is_here(url),
    }


@cache
def create_tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # 40 ms, and the same for every client


def _check_url(text: str) -> str:
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
    if url.path.rstrip("/").endswith("/v1"):
        raise InvalidArgument(f"{expected}, found {text!r:.200}: leave off /v1")
    return str(url).rstrip("/")


def is_here(url: str) -> bool:
    host = httpx.URL(url).host
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(url: str) -> bool:
    """Tell whether the address is private: nobody on the way can read the requests."""
    return httpx.URL(url).scheme == "https" or is_here(url)


def find_networks(host: str) -> set[str]:
    """The kinds of networks on which a host is and others are not; of a name, of all its addresses,
    none where it has none here.
    """
    with suppress(OSError, UnicodeError):
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return {_name_network(str(at[0]).partition("%")[0]) for *_, at in addresses} - {""}
    return set()


def _name_network(text: str) -> str:
    """Empty for an address of the internet."""
    address = ipaddress.ip_address(text)
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_loopback or address.is_unspecified:
        return "this machine"
    if address.is_link_local:
        return "a link"
    return "" if address.is_global else "a private network"


def _check_secrecy(url: str) -> None:
    """Refuse to send a key where everybody on the way could read it."""
    if not is_private(url):
        raise InvalidArgument(
            f"expected an https:// URL, or one of this machine, for a key; found {url}: everybody "
            "on the way could read the key. Use https, or take PRESCORE_KEY and --key-file away"
        )


def check_key(key: str) -> str:
    key = key.strip()
    if not _KEY.fullmatch(key):  # checked here, since httpx's message would show the key
        raise InvalidArgument("expected a key of visible ASCII characters")
    return key
