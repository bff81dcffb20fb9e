"""Which addresses may be connected to, by IANA's registries of special-purpose addresses.

Python's `is_global` is not used: what it says of several of these blocks depends on its release.
"""

from collections.abc import Iterable
from enum import Enum, auto
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class AddressStanding(Enum):
    PUBLIC = auto()
    INTERNAL = auto()  # this machine or a network behind it: only for hosts that an operator names
    NEVER = auto()


# Where clouds tell machines their credentials, in blocks that would be public or internal.
_METADATA = tuple(
    map(ip_network, ("168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::254/128"))
)
_INTERNAL = tuple(
    map(
        ip_network,
        (
            *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
            *("127.0.0.0/8", "::1/128"),
            "100.64.0.0/10",  # shared by the customers of a provider
        ),
    )
)
_NEVER_IPV4 = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "169.254.0.0/16",  # link-local; the metadata of most clouds
            "192.0.0.0/24",  # protocols' own; the metadata of one cloud
            *("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "198.18.0.0/15",  # measurements
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and the broadcast
        ),
    )
)
# Of IPv6 only what is given to networks is public. Outside it are IPv4-mapped and -compatible
# addresses, NAT64, link-local, multicast.
_GIVEN = IPv6Network("2000::/3")
_NEVER_IPV6 = tuple(
    map(
        ip_network,
        (
            "2001::/23",  # protocols' own: Teredo, which has IPv4 addresses in it, and others
            "2002::/16",  # 6to4, which has IPv4 addresses in it
            *("2001:db8::/32", "3fff::/20"),  # documentation
        ),
    )
)


def standing(text: str) -> AddressStanding:
    """ValueError if it is no address."""
    address = ip_address(text)
    if _within(address, _METADATA):
        return AddressStanding.NEVER
    if _within(address, _INTERNAL):
        return AddressStanding.INTERNAL
    return AddressStanding.PUBLIC if _is_public(address) else AddressStanding.NEVER


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not _within(address, _NEVER_IPV4)
    return address in _GIVEN and not _within(address, _NEVER_IPV6)


def _within(address: Address, blocks: Iterable[Network]) -> bool:
    return any(address in block for block in blocks)
