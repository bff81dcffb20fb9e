"""Askers: team, scope, key and address of a request's sender.

Where a service is open, and for everything that is done without a request (workers, the janitor,
commands of the operator), the asker is `EVERYBODY`: of the team "local", with every scope.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

LOCAL = "local"  # the team, and the address, where none is given
TEAM = r"[a-z0-9][a-z0-9._-]{0,63}"  # how a team may be called


class Scope(StrEnum):
    """Scope of a key. In this order: each includes those before it."""

    READ = "read"
    SUBMIT = "submit"
    PUBLISH = "publish"
    ADMIN = "admin"

    def includes(self, other: "Scope") -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class Asker:
    """Sender of a request. `key`: the id of the key, which is no secret; None: a request without a
    key. A CI job's key has `labels`, for what is submitted, and a `subject`, equal for jobs of one
    project and ref.
    """

    team: str = LOCAL
    scope: Scope = Scope.ADMIN
    key: str | None = None
    address: str = LOCAL
    labels: Mapping[str, str] = field(default_factory=dict)
    subject: str | None = None

    @property
    def caller(self) -> str:
        """Owner of turns in the queue: a team's key, jobs of one ref, or else an address."""
        return self.address if self.key is None else f"{self.team}/{self.subject or self.key}"

    @property
    def claimant(self) -> str:
        """Owner of idempotency keys: a team's key, jobs of one ref, or else anyone."""
        return "anyone" if self.key is None else self.caller


EVERYBODY = Asker()
