"""`Asker`: who sends a request, of which team, and what may be asked.

Where a service is open, and for everything that is done without a request (workers, the janitor,
commands of the operator), the asker is `EVERYBODY`: of the team "local", with every scope.
"""

from dataclasses import dataclass
from enum import StrEnum

LOCAL = "local"  # the team, and the address, where none is given
TEAM = r"[a-z0-9][a-z0-9._-]{0,63}"  # how a team may be called


class Scope(StrEnum):
    """What a key allows. In this order: each includes those before it."""

    READ = "read"
    SUBMIT = "submit"
    PUBLISH = "publish"
    ADMIN = "admin"

    def includes(self, other: "Scope") -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class Asker:
    """`key`: the id of the key, which is no secret; None: a request without a key."""

    team: str = LOCAL
    scope: Scope = Scope.ADMIN
    key: str | None = None
    address: str = LOCAL

    @property
    def caller(self) -> str:
        """To whom turns belong: a key of a team, or else an address."""
        return self.address if self.key is None else f"{self.team}/{self.key}"

    @property
    def claimant(self) -> str:
        """To whom idempotency keys belong: a key of a team, or else anyone."""
        return "anyone" if self.key is None else self.caller


EVERYBODY = Asker()
