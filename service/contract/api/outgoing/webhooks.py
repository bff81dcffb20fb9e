"""Webhooks: where a team is told of its runs, and how that went."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from service.contract.api.answers import Page
from service.contract.api.outgoing.urls import OutgoingUrl
from service.contract.api.strict import Strict
from service.contract.api.texts import Timestamp

Event = Literal[
    "run.succeeded",
    "run.failed",
    "run.canceled",
    "verdict.passed",
    "verdict.failed",
    "verdict.undecided",
    "verdict.not_comparable",
]
EVENTS: tuple[Event, ...] = Event.__args__  # type: ignore[attr-defined]
TEST = "webhook.test"  # the event that is sent where somebody asks for it
USUAL: list[Event] = ["run.succeeded", "run.failed"]
Format = Literal["standard", "slack"]
WEBHOOK_ID = "^wh_[A-Za-z0-9_-]{1,37}$"


class WebhookIn(Strict):
    """Where to tell of what."""

    url: OutgoingUrl
    events: Annotated[
        list[Event],
        Field(
            min_length=1,
            max_length=len(EVENTS),
            description="`run.…`: a run of any kind has ended. `verdict.…`: an evaluation with "
            "gates has ended.",
        ),
    ] = USUAL
    format: Format = Field(
        default="standard",
        description="`standard`: JSON, signed as [Standard "
        "Webhooks](https://www.standardwebhooks.com) describes. `slack`: one line of text for an "
        "incoming webhook of Slack, or of what takes the same.",
    )


class WebhookError(BaseModel):
    """A delivery that did not arrive."""

    at: Timestamp
    message: str = Field(description="Its `webhook-id`.")
    event: str
    detail: str


class WebhookOut(BaseModel):
    """A webhook, and how its deliveries went."""

    id: str = Field(json_schema_extra={"pattern": WEBHOOK_ID})
    url: str = Field(
        description="Without what may be a password in it: the host, and the last characters."
    )
    events: list[Event]
    format: Format
    status: Literal["active", "disabled"]
    disabled_because: str | None = Field(description="null: it is active.")
    waiting: int = Field(description="Deliveries that have not arrived yet.")
    lost: int = Field(description="Deliveries that were given up, or were too many.")
    errors: list[WebhookError] = Field(description="The last ones, the latest first.")
    delivered_at: Timestamp | None = Field(description="When the last delivery arrived.")
    created_at: Timestamp


class WebhookSecretOut(WebhookOut):
    """A webhook with its secret, which is told this once."""

    secret: str | None = Field(
        description="By which deliveries are signed: `whsec_` and base64. null: the format has no "
        "signatures."
    )


class WebhookPage(Page[WebhookOut]):
    """All webhooks of a team, the latest first; `next` is null."""
