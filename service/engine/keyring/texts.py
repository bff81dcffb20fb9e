"""The text of a key: `psk_{id}_{secret}`. The secret has 256 random bits and a checksum, so that a
key that was cut off is told from one that is not known, and scanners of secrets recognise it.
"""

import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass

PREFIX = "psk"
_ID = 12
_RANDOM, _CHECK = 43, 6  # digits to the base of 62: of 256 bits, and of 32
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_FORM = re.compile(
    rf"{PREFIX}_(?P<id>[0-9a-z]{{{_ID}}})_[0-9A-Za-z]{{{_RANDOM}}}(?P<check>[0-9A-Za-z]{{{_CHECK}}})"
)
LONGEST = len(PREFIX) + _ID + _RANDOM + _CHECK + 2


@dataclass(frozen=True)
class KeyText:
    """A key's id, which is no secret, and the SHA-256 of the whole text."""

    id: str
    hash: str


def make() -> str:
    """The text of a new key."""
    identity = "".join(secrets.choice(string.digits + string.ascii_lowercase) for _ in range(_ID))
    random = _written(secrets.randbits(256), _RANDOM)
    return f"{PREFIX}_{identity}_{random}{_checksum(identity, random)}"


def read(text: str) -> KeyText | None:
    """None for a text that is no key."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    random = text.rpartition("_")[2][:_RANDOM]
    if found["check"] != _checksum(found["id"], random):
        return None
    return KeyText(found["id"], hashlib.sha256(text.encode()).hexdigest())


def _checksum(identity: str, random: str) -> str:
    return _written(zlib.crc32(f"{identity}_{random}".encode()), _CHECK)


def _written(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
