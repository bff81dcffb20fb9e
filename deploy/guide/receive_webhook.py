"""Whether a webhook is from your Prescore, by the standard library alone."""

import base64
import hmac
import time


def is_ours(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """`headers` as they came, by names in lower case; `secret` as it was given: whsec_…"""
    message, at = headers["webhook-id"], headers["webhook-timestamp"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message}.{at}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, "sha256"))
    given = headers["webhook-signature"].encode().split(b" ")
    is_fresh = abs(time.time() - int(at)) < 300
    return is_fresh and any(hmac.compare_digest(one, expected) for one in given)
