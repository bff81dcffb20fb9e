"""Exchange of CI jobs' tokens for keys of an hour: each token once."""

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from prescore.plain_text import is_plain, quoted
from service.access import keys
from service.access.keys import KeyRecord, NewKey
from service.access.oidc import tokens
from service.access.oidc.key_sets import KeySets
from service.access.oidc.tokens import JobToken
from service.access.oidc.trusted_issuers import Issuer, TokenRefused, TokenRule, TrustedIssuers
from service.contract.askers import Scope
from service.contract.errors import Unauthorized
from service.engine.records import Records
from service.engine.tables import oidc_tokens

log = structlog.get_logger()

KEY_SECONDS = 3600.0


@dataclass(frozen=True)
class TokenExchange:
    """Exchange of tokens for keys. `trusted`: None where the operator trusts no issuer."""

    trusted: TrustedIssuers | None = None
    key_sets: KeySets = field(default_factory=KeySets)

    def key_for(self, records: Records, token: str, address: str) -> tuple[KeyRecord, str]:
        """A key for this token's job, and its text. Why a token is refused, the log alone says."""
        told: dict[str, str] = {}
        try:
            return self._made(records, token, address, told)
        except TokenRefused as error:
            log.warning("a job's token was refused", because=error.because, **told)
            raise Unauthorized(
                "expected a token of a CI job that this service exchanges for a key, found another "
                "one: the service's log says why, and its operator's PRESCORE_OIDC what is trusted"
            ) from None

    def _made(
        self, records: Records, text: str, address: str, told: dict[str, str]
    ) -> tuple[KeyRecord, str]:
        if self.trusted is None:
            raise TokenRefused("is of an issuer, and none is trusted: PRESCORE_OIDC is not set")
        now = time.time()
        token = tokens.verify_token(text, self.trusted, self.key_sets, now)
        told["job"] = name_job(token)
        new = grant_key(token, now + KEY_SECONDS)
        spent = token.expires_at + 2 * tokens.LEEWAY_SECONDS
        with records.of_all.transaction() as connection:
            if not records.add_new(connection, oidc_tokens, token=token.identity, expires_at=spent):
                raise TokenRefused("was exchanged before")
            return keys.create_job_key(connection, new, address)


_NAME = 100  # characters of a key's name
_LABEL = 500
_BRANCH = "refs/heads/"
_PULL = re.compile(r"refs/pull/([0-9]+/(?:merge|head))")
_FOREIGN_EVENT = "pull_request_target"  # a fork's code may run beside the branch's own name
# Claims that are equal unless the code is of a fork. GitHub's tokens have none for it: a fork's
# jobs get no token there, unless a repository allows it.
_EQUAL = {
    "github": (("head_repository_id", "repository_id"), ("head_repository", "repository")),
    "gitlab": (("source_project_id", "project_id"), ("job_project_id", "project_id")),
}


def grant_key(token: JobToken, until: float) -> NewKey:
    """The key for a token's job; TokenRefused where no rule is for such a token. Its `subject` is
    equal for jobs of one project, ref and scope, which share turns and keys of idempotency; to
    anybody else it is of no use.
    """
    issuer = token.issuer
    _check_fork(issuer, token.claims)
    rule = next((rule for rule in issuer.rules if _matches(rule, token.claims)), None)
    if rule is None:
        raise TokenRefused("has claims for which there is no rule")
    scope = _capped(rule.allows, issuer, token.claims)
    identity = json.dumps([issuer.issuer, _identify_job(issuer, token.claims), scope])
    subject = hashlib.sha256(identity.encode()).hexdigest()[:32]
    labels = _labels(issuer, token.claims)
    return NewKey(rule.team, scope, name_job(token), until, subject, labels)


def name_job(token: JobToken) -> str:
    """The name of a token's job, for people: as in "github 123 refs/heads/main"."""
    shown = quoted(f"{token.issuer.kind} {_identify_job(token.issuer, token.claims)}")
    return shown if len(shown) <= _NAME else f"{shown[: _NAME - 1]}…"


def _matches(rule: TokenRule, claims: Mapping[str, Any]) -> bool:
    return all(_text(claims.get(name)) in values for name, values in rule.match.items())


def _text(value: object) -> str | None:
    """A claim as rules write it: numbers and truths as JSON has them."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int) else None


def _check_fork(issuer: Issuer, claims: Mapping[str, Any]) -> None:
    if issuer.kind == "github" and claims.get("event_name") == _FOREIGN_EVENT:
        raise TokenRefused(
            f"is of {_FOREIGN_EVENT}, by which forks run code beside the branch's name"
        )
    for one, other in _EQUAL.get(issuer.kind, ()):
        if one in claims and _text(claims[one]) != _text(claims.get(other)):
            raise TokenRefused("is of a fork")


def _capped(scope: Scope, issuer: Issuer, claims: Mapping[str, Any]) -> Scope:
    """Cap the scope: only jobs of events that run the ref's own code may publish."""
    event = issuer.system.event
    if scope is Scope.PUBLISH and event and claims.get(event) not in issuer.system.trusted:
        return Scope.SUBMIT
    return scope


def _identify_job(issuer: Issuer, claims: Mapping[str, Any]) -> str:
    """The identity of a job, as in "123 refs/heads/main"."""
    names = {
        "github": ("repository_id", "ref"),
        "gitlab": ("project_id", "ref_path"),
        "other": ("sub",),
    }[issuer.kind]
    return " ".join(_text(claims.get(name)) or "-" for name in names)


def _labels(issuer: Issuer, claims: Mapping[str, Any]) -> dict[str, str]:
    """Refused where a claim is missing, or is none that a label can have."""
    found = {}
    for name, claim in issuer.derived.items():
        value = _text(claims.get(claim))
        if value is None:
            raise TokenRefused(f"has no {claim}, from which the label {name} follows")
        label = _ref(value) if name == "branch" else value
        if not 0 < len(label) <= _LABEL or not is_plain(label):
            raise TokenRefused(f"has a {claim} that no label can have")
        found[name] = label
    return found


def _ref(ref: str) -> str:
    """A branch by its name. A pull request by its number, as GitHub's own variable has it. All
    other refs whole, so that no tag `main` is taken for the branch.
    """
    if ref.startswith(_BRANCH):
        return ref.removeprefix(_BRANCH)
    pull = _PULL.fullmatch(ref)
    return pull[1] if pull else ref
