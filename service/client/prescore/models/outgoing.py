"""Webhooks: where a team is told of its runs, and how that went."""

from datetime import datetime
from typing import Any

from prescore.models.base import Answer, Brief, Id


class WebhookError(Answer):
    """A message that did not arrive."""

    at: datetime | None = None
    message: str = ""
    event: str = ""
    detail: str = ""


class Webhook(Brief):
    """`url` is shown without what may be a password in it; `errors` has the last ones first."""

    id: Id
    url: str = ""
    events: tuple[str, ...] = ()
    format: str = ""
    status: str = ""
    disabled_because: str | None = None
    waiting: int = 0
    lost: int = 0
    errors: tuple[WebhookError, ...] = ()
    delivered_at: datetime | None = None
    created_at: datetime | None = None

    def facts(self) -> tuple[Any, ...]:
        return self.id, self.status, self.url


class WebhookSecret(Webhook):
    """A webhook with the secret by which its messages are signed, which is told this once and is
    in none of the short forms; None where the format has no signatures.
    """

    secret: str | None = None
