"""What a token's claims are given: team, scope and labels, by the operator's rules.

Code that somebody proposes runs with the rights of who proposes it: the job of a pull request gets
`submit` at most, and one from a fork nothing, however the rules are written.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prescore.plain_text import is_plain, quoted
from service.contract.askers import Scope
from service.engine.keyring.oidc.refusals import Refused
from service.engine.keyring.oidc.tokens import JobToken
from service.engine.keyring.oidc.trusted import Issuer, Rule

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


@dataclass(frozen=True)
class Grant:
    """`subject`: equal for jobs of one project, ref and scope, which share turns and keys of
    idempotency; of no use to anybody else.
    """

    team: str
    scope: Scope
    labels: Mapping[str, str]
    subject: str


def granted(token: JobToken) -> Grant:
    """Refused where no rule is for such a token."""
    issuer = token.issuer
    _check_fork(issuer, token.claims)
    rule = next((rule for rule in issuer.rules if _matches(rule, token.claims)), None)
    if rule is None:
        raise Refused("has claims for which there is no rule")
    scope = _capped(rule.allows, issuer, token.claims)
    told = _told(issuer, token.claims)
    return Grant(
        rule.team,
        scope,
        _labels(issuer, token.claims),
        hashlib.sha256(json.dumps([issuer.issuer, told, scope]).encode()).hexdigest()[:32],
    )


def name_of(token: JobToken) -> str:
    """Whose job it is, for people: as in "github 123 refs/heads/main"."""
    shown = quoted(f"{token.issuer.kind} {_told(token.issuer, token.claims)}")
    return shown if len(shown) <= _NAME else f"{shown[: _NAME - 1]}…"


def _matches(rule: Rule, claims: Mapping[str, Any]) -> bool:
    return all(_text(claims.get(name)) in values for name, values in rule.match.items())


def _text(value: object) -> str | None:
    """A claim as rules write it: numbers and truths as JSON has them."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int) else None


def _check_fork(issuer: Issuer, claims: Mapping[str, Any]) -> None:
    if issuer.kind == "github" and claims.get("event_name") == _FOREIGN_EVENT:
        raise Refused(f"is of {_FOREIGN_EVENT}, by which forks run code beside the branch's name")
    for one, other in _EQUAL.get(issuer.kind, ()):
        if one in claims and _text(claims[one]) != _text(claims.get(other)):
            raise Refused("is of a fork")


def _capped(scope: Scope, issuer: Issuer, claims: Mapping[str, Any]) -> Scope:
    """Only jobs of events that run the ref's own code may publish."""
    event = issuer.system.event
    if scope is Scope.PUBLISH and event and claims.get(event) not in issuer.system.trusted:
        return Scope.SUBMIT
    return scope


def _told(issuer: Issuer, claims: Mapping[str, Any]) -> str:
    """Whose job it is, as in "123 refs/heads/main"."""
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
            raise Refused(f"has no {claim}, from which the label {name} follows")
        label = _ref(value) if name == "branch" else value
        if not 0 < len(label) <= _LABEL or not is_plain(label):
            raise Refused(f"has a {claim} that no label can have")
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
