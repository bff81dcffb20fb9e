"""Tokens of CI jobs, exchanged for keys of an hour: each token once."""

import time
from dataclasses import dataclass, field

import structlog

from service.contract.errors import Unauthorized
from service.engine.keyring import keys
from service.engine.keyring.keys import KeyRecord, New
from service.engine.keyring.oidc import rules, tokens
from service.engine.keyring.oidc.key_sets import KeySets
from service.engine.keyring.oidc.refusals import Refused
from service.engine.keyring.oidc.trusted import Trusted
from service.engine.records import Records
from service.engine.tables import oidc_tokens

log = structlog.get_logger()

KEY_SECONDS = 3600.0


@dataclass(frozen=True)
class Exchange:
    """`trusted`: None where the operator trusts no issuer."""

    trusted: Trusted | None = None
    key_sets: KeySets = field(default_factory=KeySets)

    def key_for(self, records: Records, token: str, address: str) -> tuple[KeyRecord, str]:
        """A key for the job that has this token, and its text. Unauthorized, in one wording for all
        tokens that are not exchanged: the log says why.
        """
        told: dict[str, str] = {}
        try:
            return self._made(records, token, address, told)
        except Refused as error:
            log.warning("a job's token was refused", because=error.because, **told)
            raise Unauthorized(
                "expected a token of a CI job that this service exchanges for a key, found another "
                "one: the service's log says why, and its operator's PRESCORE_OIDC what is trusted"
            ) from None

    def _made(
        self, records: Records, text: str, address: str, told: dict[str, str]
    ) -> tuple[KeyRecord, str]:
        if self.trusted is None:
            raise Refused("is of an issuer, and none is trusted: PRESCORE_OIDC is not set")
        now = time.time()
        token = tokens.verified(text, self.trusted, self.key_sets, now)
        told["job"] = rules.name_of(token)
        granted = rules.granted(token)
        spent = token.expires_at + 2 * tokens.LEEWAY_SECONDS
        new = New(
            granted.team,
            granted.scope,
            rules.name_of(token),
            now + KEY_SECONDS,
            granted.subject,
            granted.labels,
        )
        with records.of_all.transaction() as connection:
            if not records.add_new(connection, oidc_tokens, token=token.identity, expires_at=spent):
                raise Refused("was exchanged before")
            return keys.make_for_job(connection, new, address)
