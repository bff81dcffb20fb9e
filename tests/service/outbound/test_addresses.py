"""Which addresses are public, by IANA's registries, written out here a second time by examples."""

import pytest

from service.outbound.addresses import AddressStanding, classify_address

PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "223.255.255.254", "2606:4700:4700::1111"]
PUBLIC += ["2a00:1450:4001:81b::200e", "172.15.255.255", "172.32.0.1", "100.63.255.255"]
PUBLIC += ["100.128.0.1", "126.255.255.255", "128.0.0.1", "2001:200::1"]
INTERNAL = ["10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.1.1"]
INTERNAL += ["127.0.0.1", "127.255.255.254", "::1", "fc00::1", "fdff:ffff::1", "100.64.0.1"]
NEVER = {
    "this network": ["0.0.0.0", "0.1.2.3", "::"],
    "link-local": ["169.254.1.1", "fe80::1", "fe80::1%eth0", "febf::1"],
    "metadata": ["169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192"],
    "metadata of IPv6": ["fd00:ec2::254", "fd20:ce::254"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "broadcast and reserved": ["255.255.255.255", "240.0.0.1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "measurements": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "IPv4-mapped": ["::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:a9fe:a9fe", "::ffff:0:8.8.8.8"],
    "IPv4-compatible": ["::127.0.0.1", "::8.8.8.8"],
    "NAT64": ["64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::a00:1"],
    "6to4": ["2002:7f00:1::", "2002:808:808::1", "192.88.99.1"],
    "Teredo": ["2001::1", "2001:0:5ef5:79fd::1"],
    "site-local": ["fec0::1"],
    "not given to anybody": ["4000::1", "5f00::1", "100::1", "::2"],
}


STANDINGS = {
    AddressStanding.PUBLIC: PUBLIC,
    AddressStanding.INTERNAL: INTERNAL,  # for hosts that an operator names, alone
    AddressStanding.NEVER: [each for group in NEVER.values() for each in group],
}


@pytest.mark.parametrize(
    ("address", "standing"), [(at, standing) for standing, some in STANDINGS.items() for at in some]
)
def test_an_address_is_public_or_internal_or_never_connected_to(address, standing):
    assert classify_address(address) is standing


@pytest.mark.parametrize("text", ["localhost", "127.1", "0x7f.0.0.1", "2130706433", "", "[::1]"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="IPv4 or IPv6"):
        classify_address(text)
