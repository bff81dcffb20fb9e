"""Registry of a team's webhooks: created, listed, given another secret, deleted."""

import json
import re
import secrets
import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.webhooks import Webhook, WebhookError, WebhookSecret
from service.access import audit
from service.contract import limits
from service.contract.api import urls
from service.contract.api.field_types import moment, moment_or_none
from service.contract.api.urls import WebhookRequest
from service.contract.askers import EVERYBODY, Asker
from service.contract.errors import Conflict, NotFound
from service.engine import tenancy
from service.engine.records import Records, count_rows
from service.engine.tables import deliveries, webhooks
from service.webhooks import signing

_ID = re.compile(r"wh_[A-Za-z0-9_-]{1,37}")  # PostgreSQL refuses a NUL even in a comparison
OLD_SECONDS = 24 * 3600.0  # for which a secret signs beside the one that replaced it
_WAITING = (
    sa.select(sa.func.count())
    .where(deliveries.c.webhook_id == webhooks.c.id)
    .scalar_subquery()
    .label("waiting")
)


def create_webhook(
    records: Records, asked: WebhookRequest, place: str, asker: Asker = EVERYBODY
) -> WebhookSecret:
    """`place`: the URL under which its maker knows this service. Conflict where there are many."""
    identity = f"wh_{secrets.token_urlsafe(18)}"
    values = {
        "id": identity,
        "place": place,
        "url": asked.url,
        "events": json.dumps(list(dict.fromkeys(asked.events))),
        "format": asked.format,
        "secret": signing.make_secret() if asked.format == "standard" else None,
        "created_at": time.time(),
    }
    with records.transaction() as connection:
        if count_rows(connection, webhooks) >= limits.WEBHOOKS:
            raise Conflict(f"there are {limits.WEBHOOKS} webhooks, as many as may be: delete one")
        connection.execute(webhooks.insert().values(team=tenancy.find_owner(connection), **values))
        made = _with_secret(find_webhook(connection, identity))
        audit.note_change(connection, asker, "webhook.created", identity, url=made.url)
        return made


def list_webhooks(records: Records) -> list[Webhook]:
    """The latest first."""
    query = sa.select(webhooks, _WAITING).order_by(webhooks.c.created_at.desc(), webhooks.c.id)
    return [_shown(row) for row in records.read(query)]


def read_webhook(records: Records, identity: str) -> Webhook:
    with records.reading() as connection:
        return _shown(find_webhook(connection, identity))


def delete_webhook(records: Records, identity: str, asker: Asker = EVERYBODY) -> None:
    """Delete a webhook with all its deliveries."""
    with records.transaction() as connection:
        find_webhook(connection, identity)
        connection.execute(deliveries.delete().where(deliveries.c.webhook_id == identity))
        connection.execute(webhooks.delete().where(webhooks.c.id == identity))
        audit.note_change(connection, asker, "webhook.deleted", identity)


def rotate_secret(records: Records, identity: str, asker: Asker = EVERYBODY) -> WebhookSecret:
    """Give it another secret; the one that it had signs too, for a day."""
    with records.transaction() as connection:
        row = find_webhook(connection, identity)
        if row.secret is None:
            raise Conflict(f"webhook {identity} has no secret: its format has no signatures")
        change_webhook(
            connection,
            identity,
            secret=signing.make_secret(),
            old_secret=row.secret,
            old_until=time.time() + OLD_SECONDS,
        )
        audit.note_change(connection, asker, "webhook.rotated", identity)
        return _with_secret(find_webhook(connection, identity))


def find_webhook(connection: Connection, identity: str) -> Row[Any]:
    """Find a webhook's row, and how much is `waiting`; NotFound if it is another team's."""
    own = sa.select(webhooks, _WAITING).where(webhooks.c.id == identity)
    row = connection.execute(own).first() if _ID.fullmatch(identity) else None
    if row is None:
        raise NotFound(f"no webhook {identity!r:.60}")
    return row


def change_webhook(connection: Connection, identity: str, **values: object) -> None:
    connection.execute(webhooks.update().where(webhooks.c.id == identity).values(**values))


def _shown(row: Row[Any]) -> Webhook:
    found = row._mapping  # noqa: SLF001
    return Webhook(
        id=found["id"],
        url=urls.shorten_url(found["url"]),
        events=json.loads(found["events"]),
        format=found["format"],
        status="active" if found["disabled_because"] is None else "disabled",
        disabled_because=found["disabled_because"],
        waiting=found["waiting"],
        lost=found["lost"],
        errors=[WebhookError.model_validate(each) for each in json.loads(found["errors"])],
        delivered_at=moment_or_none(found["delivered_at"]),
        created_at=moment(found["created_at"]),
    )


def _with_secret(row: Row[Any]) -> WebhookSecret:
    return WebhookSecret(**dict(_shown(row)), secret=row._mapping["secret"])  # noqa: SLF001
