"""Keys of the service."""

from datetime import datetime

from pydantic import Field

from prescore.models.base import Answer


class JobKey(Answer):
    """A key for the CI job that asked. What is submitted with it has these labels."""

    key: str = Field(repr=False)
    expires_at: datetime
    scopes: tuple[str, ...] = ()
    team: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
