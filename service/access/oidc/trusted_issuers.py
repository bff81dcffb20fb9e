"""Issuers whose tokens become keys: the operator's file (`PRESCORE_OIDC`).

    [[issuers]]
    kind = "github"
    issuer = "https://token.actions.githubusercontent.com"
    audience = "https://prescore.example.org"
    algorithms = ["RS256"]
    jwks_uri = "https://token.actions.githubusercontent.com/.well-known/jwks"

    [[issuers.rules]]
    team = "vision"
    scope = "publish"
    match = { repository_id = "123", ref = "refs/heads/main", ref_protected = "true" }

What identifies a project is its number: a name can be given up, and taken by somebody else.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from prescore.plain_text import NAME, quoted
from service.contract import limits, wording
from service.contract.askers import TEAM, Scope
from service.contract.errors import InvalidSetting, UrlRefused
from service.outbound import destinations
from service.outbound.destinations import AllowedHosts

MOST_BYTES = 1 << 20
_LIFETIME_SECONDS = 3600
_Name = Annotated[str, Field(min_length=1, max_length=100, pattern=NAME)]
_Value = Annotated[str, Field(min_length=1, max_length=500, pattern=NAME)]
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


@dataclass(frozen=True)
class CiSystem:
    """The claims in tokens of a CI system.

    `numbers`: claims with the number of a project or of its owner. `protected`: claims that a rule
    of the scope `publish` names. `trusted`: claim and values of jobs that run the code of the ref
    itself; others never get more than `submit`. `labels`: claims from which labels follow.
    """

    numbers: Sequence[str] = ()
    protected: Sequence[str] = ()
    event: str = ""
    trusted: frozenset[str] = frozenset()
    labels: Mapping[str, str] | None = None


SYSTEMS: Mapping[str, CiSystem] = {
    "github": CiSystem(
        numbers=("repository_id", "repository_owner_id"),
        protected=("ref", "ref_protected"),
        event="event_name",
        trusted=frozenset(("push", "schedule", "workflow_dispatch", "release")),
        labels={"branch": "ref", "commit": "sha", "run": "run_id"},
    ),
    "gitlab": CiSystem(
        numbers=("project_id", "namespace_id"),
        protected=("ref_path", "ref_protected"),
        event="pipeline_source",
        trusted=frozenset(("push", "schedule", "web")),
        labels={"branch": "ref_path", "commit": "sha", "run": "pipeline_id"},
    ),
    "other": CiSystem(labels={}),
}


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _texts(value: Any) -> Any:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return value
    example = f'"{str(value).lower()}"' if isinstance(value, int | float) else '"123"'
    raise PydanticCustomError("texts", f"expected a text, such as {example}, or a list of texts")


class TokenRule(_StrictModel):
    """Team and scope for tokens with all claims of `match`, each with one of these values."""

    team: str = Field(pattern=f"^{TEAM}$")
    scope: Literal["read", "submit", "publish"]
    match: dict[
        _Name,
        Annotated[list[_Value], Field(min_length=1, max_length=100), BeforeValidator(_texts)],
    ] = Field(min_length=1, max_length=50)

    @property
    def allows(self) -> Scope:
        return Scope(self.scope)


class Issuer(_StrictModel):
    """Trusted issuer. `lifetime`: seconds between a token's `iat` and its `exp`, at most."""

    kind: Literal["github", "gitlab", "other"]
    issuer: str = Field(pattern=r"^https://[!-~]{1,490}$")
    audience: _Value
    algorithms: list[Algorithm] = Field(min_length=1, max_length=10)
    jwks_uri: str = Field(max_length=2000)
    lifetime: int = Field(default=_LIFETIME_SECONDS, ge=60, le=86400)
    labels: dict[_Name, _Name] | None = Field(default=None, max_length=limits.LABELS)
    rules: list[TokenRule] = Field(min_length=1, max_length=1000)

    @property
    def system(self) -> CiSystem:
        return SYSTEMS[self.kind]

    @property
    def derived(self) -> Mapping[str, str]:
        """Names of labels, each with the claim that it follows from."""
        return self.labels if self.labels is not None else self.system.labels or {}

    @property
    def named(self) -> AllowedHosts:
        """The host of the key set: the operator names it here, so it may be inside."""
        return AllowedHosts.read(self.jwks_uri.removeprefix("https://").partition("/")[0])


class TrustedIssuers(_StrictModel):
    issuers: list[Issuer] = Field(min_length=1, max_length=100)

    def find(self, issuer: object) -> Issuer | None:
        return next((each for each in self.issuers if each.issuer == issuer), None)


def read_issuers(path: Path | None) -> TrustedIssuers | None:
    """The operator's file; None: there is none. InvalidSetting says what is wrong, and where."""
    if path is None:
        return None
    found = _parsed(path)
    try:
        trusted = TrustedIssuers.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        raise _wrong(path, _place(first["loc"]), wording.describe_field_error(first)) from None
    for number, issuer in enumerate(trusted.issuers):
        at = f"issuers[{number}]"
        if trusted.find(issuer.issuer) is not issuer:
            raise _wrong(path, f"{at}.issuer", "expected each issuer once: put its rules together")
        if problem := next(_find_problems(issuer), None):
            place, what = problem
            raise _wrong(path, f"{at}.{place}", what)
    return trusted


def _parsed(path: Path) -> Any:
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidSetting(
            f"PRESCORE_OIDC: expected a file that can be read, found {path}: {error.strerror}"
        ) from None
    if len(data) > MOST_BYTES:
        raise InvalidSetting(f"PRESCORE_OIDC: {path}: expected at most {MOST_BYTES} bytes")
    try:
        return tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidSetting(f"PRESCORE_OIDC: {path}: expected TOML: {error!s:.200}") from None


def _find_problems(issuer: Issuer) -> Iterator[tuple[str, str]]:
    """Problems of an issuer's URL and rules that no field can see by itself, with their places."""
    try:
        destinations.parse_destination(issuer.jwks_uri, issuer.named)
    except (UrlRefused, InvalidSetting) as error:
        yield "jwks_uri", error.detail
    for number, rule in enumerate(issuer.rules):
        for place, what in _find_problems_of_rule(issuer.system, rule):
            yield f"rules[{number}].match{place}", what


def _find_problems_of_rule(system: CiSystem, rule: TokenRule) -> Iterator[tuple[str, str]]:
    identified = [name for name in system.numbers if name in rule.match]
    if system.numbers and not identified:
        names = f"expected {' or '.join(system.numbers)}, found {', '.join(rule.match)}"
        yield "", f"{names}: a name of a project can be taken by somebody else, its number cannot"
    for name in identified:
        if not all(value.isascii() and value.isdigit() for value in rule.match[name]):
            yield f".{name}", f"expected digits alone, found {rule.match[name]}"
    if rule.allows is not Scope.PUBLISH or not system.protected:
        return
    for name in system.protected:
        if name not in rule.match:
            example = f'{system.protected[0]} = "refs/heads/main", ref_protected = "true"'
            why = f"the scope publish is for protected refs alone, such as {example}"
            yield "", f"expected {name}, found none: {why}"
    found = rule.match.get("ref_protected")
    if found != ["true"]:
        yield ".ref_protected", f'expected "true", found {found!r}'


def _wrong(path: Path, place: str, what: str) -> InvalidSetting:
    return InvalidSetting(
        f"PRESCORE_OIDC: {path}: {place}: {quoted(what)}; see deploy/guide/keys.md"
    )


def _place(location: Sequence[Any]) -> str:
    """Format the location of an error in the file, such as `issuers[0].rules[1].scope`."""
    told = ""
    for part in location:
        told += f"[{part}]" if isinstance(part, int) else f".{part}"
    return told.removeprefix(".") or "the file"


class TokenRefused(Exception):
    """`because`: for the operator, with nothing of the token's own but what was checked."""

    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because
