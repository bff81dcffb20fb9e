"""Destinations of URLs, read by one grammar, which accepts less than others do.

What programs read differently (user names, backslashes, addresses as numbers, other alphabets) is
refused, so that what was judged is what is connected to. Hosts have names: of addresses there are
too many spellings.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from service.contract.api import urls
from service.contract.errors import InvalidSetting, UrlRefused

_URL = re.compile(
    rf"https://(?P<host>[A-Za-z0-9.-]+)(:(?P<port>[0-9]{{1,5}}))?(?P<target>{urls.TARGET})?"
)
_NAME = re.compile(urls.NAME)
_NAMED = re.compile(r"(?P<host>[A-Za-z0-9.-]+)(:(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True)
class Destination:
    host: str  # in lower case
    port: int
    target: str  # path and query
    named: bool  # by the operator: may be inside

    @property
    def authority(self) -> str:
        """Host and port as the header `Host` has them; without the port 443."""
        return self.host if self.port == 443 else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class AllowedHosts:
    """Hosts that an operator names, each with its ports: their addresses may be internal."""

    ports: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def read(cls, setting: str) -> "AllowedHosts":
        """Read `host` or `host:port`, with commas between them."""
        found: dict[str, frozenset[int]] = {}
        for text in filter(None, map(str.strip, setting.split(","))):
            match = _NAMED.fullmatch(text)
            if match is None:
                raise InvalidSetting(
                    f"PRESCORE_OUTGOING_ALLOW: expected host or host:port, found {text!r:.100}"
                )
            host = match["host"].lower()
            ports = frozenset((int(match["port"]),)) if match["port"] else urls.PORTS
            found[host] = found.get(host, frozenset()) | ports
        return cls(found)


def parse_destination(url: str, named: AllowedHosts) -> Destination:
    """UrlRefused, with what was expected, unless it may be asked; nothing is looked up."""
    match = _URL.fullmatch(url)
    if match is None or len(url) > urls.LONGEST:
        raise UrlRefused(f"expected {urls.EXPECTED}")
    host, port = match["host"].lower(), int(match["port"] or 443)
    ports = named.ports.get(host)
    if ports is None and not _NAME.fullmatch(host):
        raise UrlRefused(f"expected a host's full name, such as hooks.example.com, found {host!r}")
    usual = ports or urls.PORTS
    if port not in usual:
        raise UrlRefused(f"expected port {' or '.join(map(str, sorted(usual)))}, found {port}")
    target = match["target"] or "/"
    return Destination(host, port, target if target[0] == "/" else f"/{target}", ports is not None)
