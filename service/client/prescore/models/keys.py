"""Keys of the service."""

from datetime import datetime

from pydantic import Field

from prescore.models.base import Answer, Brief


class JobKey(Answer):
    """A key for the CI job that asked. What is submitted with it has these labels."""

    key: str = Field(repr=False)
    expires_at: datetime
    scopes: tuple[str, ...] = ()
    team: str = ""
    labels: dict[str, str] = Field(default_factory=dict)


class Limit(Answer):
    """`resets_in`: seconds until `used` begins anew; None: as runs end or things are deleted."""

    name: str
    limit: float
    used: float
    resets_in: int | None = None


class Me(Brief):
    """Whose key it is that asks, and what it may. `key` and `name` are None where the service is
    open.
    """

    team: str
    scope: str
    key: str | None = None
    name: str | None = None
    expires_at: datetime | None = None
    protected_labels: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = Field((), max_length=100)

    def facts(self) -> tuple[object, ...]:
        return self.team, self.scope, self.name or ""


class Key(Brief):
    """A key of the team, without its text. `subject`: the CI job that it was made for."""

    id: str
    name: str = ""
    scope: str = ""
    subject: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None

    def facts(self) -> tuple[object, ...]:
        return self.id, self.name, self.scope
