"""The list of who changed what."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from service.contract.api.answers import Page
from service.contract.api.texts import Timestamp

Action = Literal[
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


class AuditEntry(BaseModel):
    """One change, and who made it."""

    at: Timestamp
    team: str
    key: str | None = Field(
        description="The id of the key that asked; null: nobody needs a key, or the service did it."
    )
    address: str = Field(description="Where the request came from; empty: the service did it.")
    action: Action
    object: str = Field(
        description="What was changed: a run's id, a digest, `name@version` of a dataset, the id "
        "of a key."
    )
    detail: dict[str, Any] = Field(description="What else there is to say, by the action.")


class AuditPage(Page[AuditEntry]):
    """Changes, the latest first."""
