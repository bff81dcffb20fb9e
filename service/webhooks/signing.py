"""Signatures as Standard Webhooks 1.0.0 has them: HMAC-SHA256 of id, time and body, by a secret.

The specification: https://www.standardwebhooks.com
"""

import base64
import hmac
import secrets
from collections.abc import Iterable

PREFIX = "whsec_"
_SECRET_BYTES = 32


def make_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def sign_headers(message: str, at: float, body: bytes, keys: Iterable[str]) -> dict[str, str]:
    """The headers of one attempt at that time; one signature for each secret."""
    stamp = str(int(at))
    signed = b".".join((message.encode(), stamp.encode(), body))
    return {
        "webhook-id": message,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(_signature(key, signed) for key in keys),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"
