"""What is told of a key to whoever asks with it, or for it."""

from typing import Literal

from pydantic import BaseModel, Field

from service.contract.api.answers import Page
from service.contract.api.strict import Strict
from service.contract.api.texts import Timestamp

ScopeName = Literal["read", "submit", "publish", "admin"]


class LimitOut(BaseModel):
    """How much of something may be asked for, and how much of it is used."""

    name: Literal["requests", "runs", "upload_bytes", "stored_bytes", "device_seconds"] = Field(
        description="`requests` a minute of this key; of the team: `runs` that are unfinished, "
        "`upload_bytes` a day, `stored_bytes` in all, `device_seconds` of computing a day."
    )
    limit: float
    used: float
    resets_in: int | None = Field(
        description="Seconds until it begins anew; null: when runs end, or something is deleted."
    )


class MeOut(BaseModel):
    """Who asks, and what they may."""

    team: str = Field(description="The team whose runs and uploads are shown.")
    scope: ScopeName = Field(
        description="What the key allows; each scope includes those before it."
    )
    key: str | None = Field(description="The key's id; null: the service is open.")
    name: str | None = Field(description="What the key is called; null: the service is open.")
    expires_at: Timestamp | None = Field(description="When the key ends; null: never.")
    protected_labels: list[str] = Field(
        description="Labels NAME=VALUE that need the scope `publish`."
    )
    limits: list[LimitOut] = Field(description="What is not named here has no limit of its own.")


class KeyListed(BaseModel):
    """A key of the team, without its text."""

    id: str
    name: str = Field(description="What it is called; empty where it has no name.")
    scope: ScopeName
    subject: str | None = Field(
        description="The CI job that it was made for; null: it is no job's."
    )
    created_at: Timestamp
    expires_at: Timestamp | None = Field(description="When it ends; null: never.")
    revoked_at: Timestamp | None = Field(description="When it was revoked; null: it was not.")
    used_at: Timestamp | None = Field(description="When it was last used, to a minute.")


class KeyPage(Page[KeyListed]):
    pass


class JobKeyIn(Strict):
    """A CI job's proof of who it is."""

    token: str = Field(
        min_length=1,
        max_length=16_384,
        pattern=r"^[!-~]+$",
        description="The JWT that the CI system gives to the job.",
    )


class JobKeyOut(BaseModel):
    """A key for one CI job."""

    key: str = Field(description="The key; nobody can see it again.")
    expires_at: Timestamp = Field(description="When the key ends.")
    scopes: list[ScopeName] = Field(description="All that it allows.")
    team: str = Field(description="The team whose runs and uploads it shows.")
    labels: dict[str, str] = Field(
        description="Labels that evaluations submitted with this key get, by the job's branch, "
        "commit and run. Others of these names are refused."
    )
