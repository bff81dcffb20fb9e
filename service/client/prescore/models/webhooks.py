"""Webhooks: URLs that get messages about a team's runs, with their deliveries and errors."""

from typing import Annotated, Any, Literal

from pydantic import Field

from prescore.models.base import Answer, Brief, OpenEnum, PageOf, TupleOf
from prescore.models.choices import WebhookFormat
from prescore.models.identifiers import Id, Timestamp

WEBHOOK_ID = "^wh_[A-Za-z0-9_-]{1,37}$"
WebhookEvent = Literal[
    "run.succeeded",
    "run.failed",
    "run.canceled",
    "verdict.passed",
    "verdict.failed",
    "verdict.undecided",
    "verdict.not_comparable",
]


class WebhookError(Answer):
    """A delivery that did not arrive."""

    at: Timestamp
    message: str = Field(description="Its `webhook-id`.")
    event: str
    detail: str


class Webhook(Brief, needs=("id",)):
    """A webhook, and how its deliveries went."""

    id: Id = Field(json_schema_extra={"pattern": WEBHOOK_ID})
    url: str = Field(
        description="Without what may be a password in it: the host, and the last characters."
    )
    events: TupleOf[Annotated[WebhookEvent, OpenEnum()]]
    format: Annotated[WebhookFormat, OpenEnum()]
    status: Annotated[Literal["active", "disabled"], OpenEnum()]
    disabled_because: str | None = Field(description="null: it is active.")
    waiting: int = Field(description="Deliveries that have not arrived yet.")
    lost: int = Field(description="Deliveries that were given up, or were too many.")
    errors: TupleOf[WebhookError] = Field(description="The last ones, the latest first.")
    delivered_at: Timestamp | None = Field(description="Time at which the last delivery arrived.")
    created_at: Timestamp

    def facts(self) -> tuple[Any, ...]:
        return self.id, self.status, self.url


class WebhookSecret(Webhook):
    """A webhook with its secret, which is told this once."""

    secret: str | None = Field(
        description="By which deliveries are signed: `whsec_` and base64. null: the format has no "
        "signatures."
    )


class WebhookPage(PageOf[Webhook]):
    """All webhooks of a team, the latest first; `next` is null."""
