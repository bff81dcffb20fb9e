"""Keys, their limits, and the audit log of changes made with them."""

from typing import Annotated, Any, Literal

from pydantic import Field

from prescore.models.base import Answer, Brief, OpenEnum, PageOf, TupleOf
from prescore.models.identifiers import Moment, Timestamp

ScopeName = Annotated[Literal["read", "submit", "publish", "admin"], OpenEnum()]
ChangeAction = Literal[
    "checkpoint.deleted",
    "columns.deleted",
    "dataset.deleted",
    "dataset.published",
    "key.created",
    "key.revoked",
    "key.rotated",
    "run.canceled",
    "run.changed",
    "run.deleted",
    "run.expired",
    "webhook.created",
    "webhook.deleted",
    "webhook.rotated",
]


class Limit(Answer, needs=("name", "limit", "used")):
    """Limit of a key or a team, and how much of it is used."""

    name: Annotated[
        Literal["requests", "runs", "upload_bytes", "stored_bytes", "device_seconds"], OpenEnum()
    ] = Field(
        description="`requests` a minute of this key; of the team: `runs` that are unfinished, "
        "`upload_bytes` a day, `stored_bytes` in all, `device_seconds` of computing a day."
    )
    limit: float
    used: float
    resets_in: int | None = Field(
        description="Seconds until it begins anew; null: when runs end, or something is deleted."
    )


class Me(Brief, needs=("team", "scope")):
    """Team, key, scope and limits of the caller."""

    team: str = Field(description="The team whose runs and uploads are shown.")
    scope: ScopeName = Field(description="Scope of the key; each scope includes those before it.")
    key: str | None = Field(description="The key's id; null: the service is open.")
    name: str | None = Field(description="Name of the key; null: the service is open.")
    expires_at: Timestamp | None = Field(description="Time at which the key expires; null: never.")
    protected_labels: TupleOf[str] = Field(
        description="Labels NAME=VALUE that need the scope `publish`."
    )
    limits: TupleOf[Limit] = Field(
        description="Limits by name; other things have no limit of their own."
    )

    def facts(self) -> tuple[object, ...]:
        return self.team, self.scope, self.name or ""


class Key(Brief, needs=("id",)):
    """A key of the team, without its text."""

    id: str
    name: str = Field(description="Name; empty where it has none.")
    scope: ScopeName
    subject: str | None = Field(
        description="The CI job that it was made for; null: it is no job's."
    )
    created_at: Timestamp
    expires_at: Timestamp | None = Field(description="Time at which it expires; null: never.")
    revoked_at: Timestamp | None = Field(
        description="Time at which it was revoked; null: it was not."
    )
    used_at: Timestamp | None = Field(description="Time of its last use, to a minute.")

    def facts(self) -> tuple[object, ...]:
        return self.id, self.name, self.scope


class KeyPage(PageOf[Key]):
    pass


class JobKey(Answer, needs=("key",)):
    """A key for one CI job."""

    key: str = Field(repr=False, description="The key; nobody can see it again.")
    expires_at: Moment = Field(description="Time at which the key expires.")
    scopes: TupleOf[ScopeName] = Field(description="All that it allows.")
    team: str = Field(description="The team whose runs and uploads it shows.")
    labels: dict[str, str] = Field(
        description="Labels that evaluations submitted with this key get, by the job's branch, "
        "commit and run. Others of these names are refused."
    )


class Change(Brief, needs=("action", "object")):
    """One change, and who made it."""

    at: Timestamp
    team: str
    key: str | None = Field(
        description="The id of the key that asked; null: nobody needs a key, or the service did it."
    )
    address: str = Field(description="Address of the request; empty: the service did it.")
    action: Annotated[ChangeAction, OpenEnum()]
    object: str = Field(
        description="Changed object: a run's id, a digest, `name@version` of a dataset, the id "
        "of a key."
    )
    detail: dict[str, Any] = Field(description="Further details, by action.")

    def facts(self) -> tuple[Any, ...]:
        return self.action, self.object, self.key or self.address


class ChangePage(PageOf[Change]):
    """Changes, the latest first."""
