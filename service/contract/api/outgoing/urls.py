"""URLs that the service asks by itself, as a pattern: less than RFC 3986 allows.

What programs read differently is not in it, so that all of them read the same.
"""

from typing import Annotated

from pydantic import Field

LONGEST = 2000  # characters
PORTS = frozenset((443, 8443))
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_LAST = "[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"  # after a last number, it could be an address
NAME = rf"({_LABEL}\.)+{_LAST}"
TARGET = r"[/?][!$-\[\]-~]*"  # ASCII without blank, quote, # and backslash
PATTERN = rf"^https://{NAME}(:(443|8443))?({TARGET})?$"
EXPECTED = (
    f"https://host/path of at most {LONGEST} characters in ASCII, without user, password and #; a "
    "name in another alphabet is written xn--…, and other characters %XX"
)

OutgoingUrl = Annotated[
    str,
    Field(
        max_length=LONGEST,
        json_schema_extra={"pattern": PATTERN},
        description="https, a public host by its full name, port 443 or 8443. An operator may name "
        "others in `PRESCORE_OUTGOING_ALLOW`.",
        examples=["https://hooks.example.com/prescore"],
    ),
]


def shown(url: str) -> str:
    """A URL without what may be a password: the host, and the last characters."""
    _, _, rest = url.partition("://")
    host, _, path = rest.replace("?", "/", 1).partition("/")
    return f"https://{host}/…{path[-4:] if len(path) >= 16 else ''}"
