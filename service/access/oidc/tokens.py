"""Tokens of CI jobs, as their issuers sign them (JWT): read, and verified.

Nothing that a token says of itself is followed: its issuer is one of the operator's list, its key
is one of that issuer's set, its algorithm one of those that are allowed for that issuer.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.util import urlsafe_b64decode

from service.access.oidc.key_sets import KeySets
from service.access.oidc.trusted_issuers import Issuer, TokenRefused, TrustedIssuers
from service.contract.formats import strict_json

LEEWAY_SECONDS = 60.0  # by which clocks may differ
LONGEST_TOKEN = 16 << 10  # characters
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_TYPES = ("JWT", "jwt")
# Headers that say where the key is, and those that change what is signed.
_FOREIGN_KEYS = ("jku", "jwk", "x5u", "x5c")
_CHANGING = ("crit", "b64", "zip", "cty", "enc")
_MOST_KEYS = 200  # claims; GitHub's tokens have 40


@dataclass(frozen=True)
class JobToken:
    """A token whose signature and times are right. `identity`: equal for the same token alone."""

    issuer: Issuer
    claims: Mapping[str, Any]
    identity: str
    expires_at: float


def verify_token(text: str, trusted: TrustedIssuers, key_sets: KeySets, now: float) -> JobToken:
    """TokenRefused, with its reason, for others; ServiceUnavailable: the keys cannot be had."""
    if len(text) > LONGEST_TOKEN:
        raise TokenRefused("is longer than tokens are")
    if not _FORM.fullmatch(text):
        raise TokenRefused("is no JWT")
    try:
        found = jws.extract_compact(text.encode("ascii"), registry=_registry([]))
    except (JoseError, ValueError, TypeError, RecursionError):
        raise TokenRefused("is no JWT") from None
    header = _parsed(urlsafe_b64decode(found.segments["header"]), "header")
    claims = _parsed(found.payload, "claims")
    issuer = trusted.find(claims.get("iss"))
    if issuer is None:
        raise TokenRefused("has an issuer that is not trusted")
    _check_header(header, issuer)
    key = key_sets.find(issuer, header["kid"], header["alg"])
    try:
        is_right = jws.validate_compact(found, key, registry=_registry(list(issuer.algorithms)))
    except (JoseError, ValueError, TypeError):
        is_right = False
    if not is_right:
        raise TokenRefused("has a signature that is not its issuer's")
    _check_audience(claims.get("aud"), issuer)
    until = _check_times(claims, issuer, now)
    return JobToken(issuer, claims, _identity(issuer, claims, found.payload or b""), until)


def _registry(algorithms: list[Any]) -> jws.JWSRegistry:
    registry = jws.JWSRegistry(algorithms=algorithms, strict_check_header=False)
    registry.max_header_length = LONGEST_TOKEN
    registry.max_payload_length = LONGEST_TOKEN
    registry.max_signature_length = LONGEST_TOKEN
    return registry


def _parsed(data: bytes | None, what: str) -> dict[str, Any]:
    """Strictly: two readers must not find different claims in one token."""
    try:
        found = strict_json.parse_json((data or b"").decode("utf-8"), most_keys=_MOST_KEYS)
    except ValueError:  # NotJson and UnicodeDecodeError are such
        raise TokenRefused(f"has {what} that are not strict JSON") from None
    if not isinstance(found, dict):
        raise TokenRefused(f"has {what} that are no JSON object")
    return found


def _check_header(header: Mapping[str, Any], issuer: Issuer) -> None:
    for name in _FOREIGN_KEYS:
        if name in header:
            raise TokenRefused(f"names a key of its own ({name})")
    for name in _CHANGING:
        if name in header:
            raise TokenRefused(f"has a header that is not understood ({name})")
    if header.get("typ", _TYPES[0]) not in _TYPES:
        raise TokenRefused("is of another type than JWT")
    if header.get("alg") not in issuer.algorithms:
        raise TokenRefused("is signed by an algorithm that is not allowed")
    kid = header.get("kid")
    if not isinstance(kid, str) or not 0 < len(kid) <= 500:
        raise TokenRefused("does not say by which key it is signed")


def _check_audience(found: object, issuer: Issuer) -> None:
    if isinstance(found, list) and len(found) != 1:
        raise TokenRefused(f"has {len(found)} audiences")
    (audience,) = found if isinstance(found, list) else (found,)
    if audience != issuer.audience:
        raise TokenRefused("is for another audience")


def _check_times(claims: Mapping[str, Any], issuer: Issuer, now: float) -> float:
    """Check the times of a token. Return when it expires, in seconds since 1970."""
    until, begun = (_seconds(claims, name) for name in ("exp", "iat"))
    if until <= now - LEEWAY_SECONDS:
        raise TokenRefused("has expired")
    if begun > now + LEEWAY_SECONDS:
        raise TokenRefused("was issued in the future")
    if "nbf" in claims and _seconds(claims, "nbf") > now + LEEWAY_SECONDS:
        raise TokenRefused("is not valid yet")
    if not 0 < until - begun <= issuer.lifetime:
        raise TokenRefused(f"is valid for longer than {issuer.lifetime} s, or for no time at all")
    return until


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    found = claims.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise TokenRefused(f"does not say when ({name})")
    return float(found)


def _identity(issuer: Issuer, claims: Mapping[str, Any], payload: bytes) -> str:
    """Hash the token's `jti`, or else all its claims: a signature may be written in two ways."""
    given = claims.get("jti")
    own = given.encode() if isinstance(given, str) and given else payload
    kind = b"jti" if own is not payload else b"claims"
    return hashlib.sha256(b"\0".join((issuer.issuer.encode(), kind, own))).hexdigest()
