"""Addresses of hosts: looked up, and judged by IANA's special-purpose registries.

Python's `is_global` is not used: what it says of several of these blocks depends on its release.
"""

import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from queue import Empty, SimpleQueue

from service.contract.errors import UrlFailed, UrlRefused
from service.outbound.destinations import Destination

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class AddressStanding(Enum):
    PUBLIC = auto()
    INTERNAL = auto()  # this machine or a network behind it: only for hosts that an operator names
    NEVER = auto()


def _blocks(*texts: str) -> Sequence[Network]:
    return tuple(map(ip_network, texts))


# Where clouds tell machines their credentials, in blocks that would be public or internal.
_METADATA = _blocks("168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::254/128")
_INTERNAL = _blocks(
    *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
    *("127.0.0.0/8", "::1/128"),
    "100.64.0.0/10",  # shared by the customers of a provider
)
_NEVER_IPV4 = _blocks(
    "0.0.0.0/8",
    "169.254.0.0/16",  # link-local; the metadata of most clouds
    "192.0.0.0/24",  # protocols' own; the metadata of one cloud
    *("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),  # documentation
    "192.88.99.0/24",  # relays of 6to4
    "198.18.0.0/15",  # measurements
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and the broadcast
)
# Of IPv6 only what is given to networks is public. Outside it are IPv4-mapped and -compatible
# addresses, NAT64, link-local, multicast.
_GIVEN = IPv6Network("2000::/3")
_NEVER_IPV6 = _blocks(
    "2001::/23",  # protocols' own: Teredo, which has IPv4 addresses in it, and others
    "2002::/16",  # 6to4, which has IPv4 addresses in it
    *("2001:db8::/32", "3fff::/20"),  # documentation
)


def classify_address(text: str) -> AddressStanding:
    """ValueError if it is no address."""
    address = ip_address(text)
    if _within(address, _METADATA):
        return AddressStanding.NEVER
    if _within(address, _INTERNAL):
        return AddressStanding.INTERNAL
    if isinstance(address, IPv4Address):
        is_public = not _within(address, _NEVER_IPV4)
    else:
        is_public = address in _GIVEN and not _within(address, _NEVER_IPV6)
    return AddressStanding.PUBLIC if is_public else AddressStanding.NEVER


def _within(address: Address, blocks: Iterable[Network]) -> bool:
    return any(address in block for block in blocks)


Resolve = Callable[[str, int], Sequence[str]]  # host and port; OSError where there is none
_AT_ONCE = threading.BoundedSemaphore(16)  # lookups: one that hangs cannot be ended


def resolve_by_system(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def find_addresses(place: Destination, resolve: Resolve, seconds: float) -> Sequence[str]:
    """The addresses of a place, if all of them may be connected to; else UrlRefused.

    Which of them may not is not told: it would show the names inside to who is outside.
    """
    found = _looked_up(place, resolve, seconds)
    allowed = {AddressStanding.PUBLIC}
    if place.named:
        allowed.add(AddressStanding.INTERNAL)
    if not found or any(_classify_text(text) not in allowed for text in found):
        raise UrlRefused(
            f"{place.host} has an address that is not public; an operator may name hosts inside in "
            "PRESCORE_OUTGOING_ALLOW"
        )
    return found


def _classify_text(text: str) -> AddressStanding:
    try:
        return classify_address(text)
    except ValueError:  # not an address, whatever it is
        return AddressStanding.NEVER


def _looked_up(place: Destination, resolve: Resolve, seconds: float) -> Sequence[str]:
    """Within so many seconds; the system's own lookup may take minutes."""
    try:
        return [str(ip_address(place.host))]
    except ValueError:
        pass
    answer: SimpleQueue[Sequence[str] | OSError] = SimpleQueue()

    def look_up() -> None:
        with _AT_ONCE:
            try:
                answer.put(resolve(place.host, place.port))
            except (OSError, UnicodeError) as error:
                answer.put(error if isinstance(error, OSError) else OSError(str(error)))

    threading.Thread(target=look_up, daemon=True).start()
    try:
        found = answer.get(timeout=max(seconds, 0.0))
    except Empty:
        raise UrlFailed(f"the name {place.host} was not found in time") from None
    if isinstance(found, OSError):
        raise UrlFailed(f"the name {place.host} was not found")
    return found
