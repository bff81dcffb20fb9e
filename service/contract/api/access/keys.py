"""What is told of a key to whoever asks with it."""

from typing import Literal

from pydantic import BaseModel, Field

from service.contract.api.texts import Timestamp


class MeOut(BaseModel):
    """Who asks, and what they may."""

    team: str = Field(description="The team whose runs and uploads are shown.")
    scope: Literal["read", "submit", "publish", "admin"] = Field(
        description="What the key allows; each scope includes those before it."
    )
    key: str | None = Field(description="The key's id; null: the service is open.")
    name: str | None = Field(description="What the key is called; null: the service is open.")
    expires_at: Timestamp | None = Field(description="When the key ends; null: never.")
    protected_labels: list[str] = Field(
        description="Labels NAME=VALUE that need the scope `publish`."
    )
