"""Key sets: the public keys of issuers, fetched from the addresses in the operator's file.

A set is kept for ten minutes, and asked for again when a token names a key that is not in it, at
most once a minute: who sends tokens must not decide how often an issuer is asked.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.util import base64_to_int

from service.access.oidc.trusted_issuers import Issuer, TokenRefused
from service.contract.errors import ServiceUnavailable, UrlRefused
from service.contract.formats import strict_json
from service.outbound.client import OutboundClient

log = structlog.get_logger()

KEPT_SECONDS = 600.0
AGAIN_SECONDS = 60.0  # between two requests for the set of one issuer
_FAILED_SECONDS = 5.0  # the same after a request that failed
_LONGEST_SECONDS = 5.0  # of one request
_MOST_BYTES = 256 << 10
_MOST_KEYS = 100
_LEAST_BITS = 2048
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
JwkKey = RSAKey | ECKey | OKPKey


@dataclass(frozen=True)
class PublicKey:
    """A key, and the algorithm that it is for; None: the set does not say."""

    key: JwkKey
    algorithm: str | None

    def is_for(self, algorithm: str) -> bool:
        if self.algorithm not in (None, algorithm):
            return False
        match self.key:
            case RSAKey():
                return algorithm.startswith(("RS", "PS"))
            case ECKey():
                return self.key.curve_name == _CURVES.get(algorithm)
            case _:
                return algorithm == "EdDSA"


@dataclass
class _IssuerKeys:
    """The known keys of one issuer."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    keys: Mapping[str, PublicKey] = field(default_factory=dict)
    asked_at: float = -math.inf  # for the last time
    had_at: float = -math.inf
    failed: bool = True  # the last time


class KeySets:
    """Key sets of issuers. `client` fetches them; the issuer decides which host it may ask."""

    def __init__(
        self, client: OutboundClient | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client or OutboundClient()
        self._clock = clock
        self._sets: dict[str, _IssuerKeys] = {}

    def find(self, issuer: Issuer, kid: str, algorithm: str) -> JwkKey:
        """Refused where the set has no such key; Unavailable where it cannot be had."""
        kept = self._sets.setdefault(issuer.issuer, _IssuerKeys())
        with kept.lock:
            now = self._clock()
            is_old = now - kept.had_at > KEPT_SECONDS
            rests = _FAILED_SECONDS if kept.failed else AGAIN_SECONDS
            if (is_old or kid not in kept.keys) and now - kept.asked_at > rests:
                self._ask(issuer, kept, now)
            keys, failed = kept.keys, kept.failed
        found = keys.get(kid)
        if found is None and failed:
            raise ServiceUnavailable("the keys of the token's issuer cannot be had now; try again")
        if found is None:
            raise TokenRefused("names a key that its issuer does not have")
        if not found.is_for(algorithm):
            raise TokenRefused("is signed by an algorithm that its key is not for")
        return found.key

    def fetch(self, issuer: Issuer) -> Mapping[str, PublicKey]:
        """The keys of an issuer, as they are now. UrlRefused: they cannot be had."""
        client = OutboundClient(issuer.named, self._client.resolve, self._client.context)
        accept = {"Accept": "application/json"}
        with client.fetched(issuer.jwks_uri, accept, _MOST_BYTES, _LONGEST_SECONDS) as parts:
            data = b"".join(parts)
        return parse_key_set(data)

    def _ask(self, issuer: Issuer, kept: _IssuerKeys, now: float) -> None:
        """Ask for the set. Where that fails, the one that is there serves for ten minutes more."""
        kept.asked_at = now
        try:
            kept.keys, kept.had_at, kept.failed = self.fetch(issuer), now, False
        except UrlRefused as error:
            log.warning("keys cannot be had", issuer=issuer.issuer, because=error.detail)
            kept.failed = True
            if now - kept.had_at > 2 * KEPT_SECONDS:
                kept.keys = {}


def parse_key_set(data: bytes) -> dict[str, PublicKey]:
    """The usable keys of a set, by their names. UrlRefused where it is none."""
    try:
        found = strict_json.parse_json(data.decode("utf-8"))
    except ValueError:
        raise UrlRefused("expected a set of keys (JWKS), found no JSON") from None
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list) or len(listed) > _MOST_KEYS:
        raise UrlRefused(f"expected a set of at most {_MOST_KEYS} keys (JWKS), found another thing")
    usable: dict[str, PublicKey] = {}
    for each in listed:
        kid = each.get("kid") if isinstance(each, dict) else None
        if not isinstance(kid, str):
            continue
        key = _key(each)
        if key is None:
            continue
        if kid in usable:
            raise UrlRefused("expected each key once, found two of the same name")
        usable[kid] = PublicKey(key, each.get("alg"))
    if not usable:
        raise UrlRefused("expected keys for signatures (RSA of 2048 bits, EC, Ed25519), found none")
    return usable


def _key(found: Mapping[str, Any]) -> JwkKey | None:
    """Parse a public key; None if it is not for signatures, too short, or not public at all."""
    if found.get("use", "sig") != "sig" or "d" in found or "k" in found:
        return None
    public = {name: found[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in found}
    with suppress(JoseError, ValueError, TypeError, KeyError):
        match found.get("kty"):
            case "RSA":
                is_long = base64_to_int(public["n"]).bit_length() >= _LEAST_BITS
                return RSAKey.import_key(public) if is_long else None
            case "EC":
                made = ECKey.import_key(public)
                made.public_key  # noqa: B018  a point that is not on its curve is told here
                return made
            case "OKP":
                return OKPKey.import_key(public)
    return None
