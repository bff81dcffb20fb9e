"""Deliveries to webhooks: added, taken by one process at a time, attempted, ended.

A message is delivered at least once: who dies while it sends has not ended it, and another takes it
when its time is over. Receivers know it by its id.
"""

import json
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract import limits
from service.contract.api.field_types import rfc3339
from service.contract.api.urls import TEST_EVENT
from service.contract.errors import UrlRefused
from service.engine.records import Records, count_rows
from service.engine.tables import deliveries, webhooks
from service.outbound.client import OutboundClient, OutgoingAnswer
from service.webhooks import registry, signing

# Seconds from one attempt to the next: three days in all, as Standard Webhooks recommends.
DELAYS = (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
TAKEN_SECONDS = 60.0  # an attempt takes a third of it at most
_LONGEST_PAUSE = 3600.0  # of a webhook that fails
_LONGEST_REQUEST = 86400.0  # that a receiver may make in Retry-After
_HOPELESS = 3 * 86400.0  # a webhook that fails for so long is disabled
_ERRORS = 5  # that are kept of a webhook
_TEAMS = 20  # that may have as many messages as a team may
_OF_A_TEAM = 2  # at once: others' receivers must not wait for those that are slow


@dataclass(frozen=True)
class DueMessage:
    """A message to be sent now."""

    id: str
    webhook: str
    event: str
    body: str
    url: str
    secrets: tuple[str, ...]  # the current one first; none where the format has no signatures


@dataclass(frozen=True)
class DeliveryOutcome:
    """The outcome of an attempt. `error`: None, it has arrived. `gone`: the receiver wants no more.
    `pause`: seconds for which the receiver asks.
    """

    error: str | None = None
    gone: bool = False
    pause: float = 0.0


def add_delivery(connection: Connection, webhook: str, team: str, event: str, body: str) -> None:
    """Add a message; one that is too many is lost, and counted."""
    of_team = count_rows(connection, deliveries, deliveries.c.team == team)
    total = count_rows(connection, deliveries)
    if of_team >= limits.DELIVERIES or total >= _TEAMS * limits.DELIVERIES:
        registry.change_webhook(connection, webhook, lost=webhooks.c.lost + 1)
        return
    now = time.time()
    values = {"event": event, "body": body, "next_at": now, "created_at": now}
    identity = f"msg_{secrets.token_hex(16)}"  # no dot may stand in it
    added = deliveries.insert().values(id=identity, webhook_id=webhook, team=team, **values)
    connection.execute(added)


def take_due_messages(records: Records, now: float, most: int) -> list[DueMessage]:
    """Take messages whose time has come: one of a webhook, and two of a team, at once."""
    with records.reading() as connection:
        if not _due(connection, now, 1):
            return []
    taken: list[DueMessage] = []
    with records.transaction() as connection:
        busy = _busy(connection, now)
        for webhook, team in _due(connection, now, 10 * most):
            if len(taken) < most and busy.get(team, 0) < _OF_A_TEAM:
                busy[team] = busy.get(team, 0) + 1
                taken.append(_taken(connection, webhook, now))
    return taken


def end_attempt(
    records: Records,
    taken: DueMessage,
    outcome: DeliveryOutcome,
    now: float,
    spread: Callable[[], float] = random.random,
) -> None:
    """Record what came of an attempt. `spread`: from 0 to 1, by which retries are apart."""
    with records.transaction() as connection:
        message = deliveries.c.id == taken.id
        row = connection.execute(sa.select(deliveries).where(message)).first()
        of = sa.select(webhooks).where(webhooks.c.id == taken.webhook)
        webhook = connection.execute(of).first()
        if row is None or webhook is None:  # was deleted meanwhile
            return
        if outcome.error is None:
            connection.execute(deliveries.delete().where(message))
            works = {"failures": 0, "failing_since": None, "paused_until": 0.0}
            works |= {"delivered_at": now, "disabled_because": None}
            registry.change_webhook(connection, taken.webhook, **works)
            return
        _fail(connection, row, webhook, outcome, now, 0.8 + 0.4 * spread())


def _fail(
    connection: Connection,
    row: Row[Any],
    webhook: Row[Any],
    outcome: DeliveryOutcome,
    now: float,
    factor: float,
) -> None:
    since = webhook.failing_since or now
    error = {"at": rfc3339(now), "message": row.id, "event": row.event, "detail": outcome.error}
    told = [error, *json.loads(webhook.errors)][:_ERRORS]
    asked = min(outcome.pause, _LONGEST_REQUEST)
    pause = max(asked, min(DELAYS[0] * 2**webhook.failures, _LONGEST_PAUSE) * factor)
    values = {
        "errors": json.dumps(told),
        "failures": min(webhook.failures + 1, 30),
        "failing_since": since,
        "paused_until": now + pause,
    }
    registry.change_webhook(connection, webhook.id, **values)
    message = deliveries.c.id == row.id
    if row.event == TEST_EVENT or row.attempts >= len(DELAYS):
        connection.execute(deliveries.delete().where(message))
        lost = 0 if row.event == TEST_EVENT else 1
        registry.change_webhook(connection, webhook.id, lost=webhooks.c.lost + lost)
    else:
        later = now + max(asked, DELAYS[row.attempts] * factor)
        tried = {"attempts": row.attempts + 1, "next_at": later, "taken_until": 0.0}
        connection.execute(deliveries.update().where(message).values(**tried))
    if outcome.gone:
        _disable(connection, webhook.id, "its receiver answered 410 Gone")
    elif now - since >= _HOPELESS:
        _disable(connection, webhook.id, "nothing has arrived for three days")


def _disable(connection: Connection, webhook: str, reason: str) -> None:
    """Disable a webhook, whose messages are lost. A test that arrives makes it active again."""
    gone = connection.execute(deliveries.delete().where(deliveries.c.webhook_id == webhook))
    lost = webhooks.c.lost + gone.rowcount
    registry.change_webhook(connection, webhook, disabled_because=reason, lost=lost)


def _due(connection: Connection, now: float, most: int) -> list[tuple[str, str]]:
    """Webhooks, with their teams, that are due and idle; what has waited longest first."""
    may = sa.or_(
        deliveries.c.event == TEST_EVENT,
        sa.and_(webhooks.c.disabled_because.is_(None), webhooks.c.paused_until <= now),
    )
    busy = sa.select(deliveries.c.webhook_id).where(deliveries.c.taken_until > now)
    query = (
        sa.select(webhooks.c.id, webhooks.c.team)
        .join(deliveries, deliveries.c.webhook_id == webhooks.c.id)
        .where(deliveries.c.next_at <= now, may, webhooks.c.id.not_in(busy))
        .group_by(webhooks.c.id, webhooks.c.team)
        .order_by(sa.func.min(deliveries.c.next_at), webhooks.c.id)
    )
    return [(row.id, row.team) for row in connection.execute(query.limit(most))]


def _busy(connection: Connection, now: float) -> dict[str, int]:
    """The number of messages of each team that are being sent."""
    count = sa.func.count().label("sending")
    query = sa.select(deliveries.c.team, count).where(deliveries.c.taken_until > now)
    found = connection.execute(query.group_by(deliveries.c.team))
    return {row.team: row.sending for row in found}


def _taken(connection: Connection, webhook: str, now: float) -> DueMessage:
    hook = connection.execute(sa.select(webhooks).where(webhooks.c.id == webhook)).one()
    waits = hook.disabled_because is not None or hook.paused_until > now
    due = [deliveries.c.webhook_id == webhook, deliveries.c.next_at <= now]
    due += [deliveries.c.event == TEST_EVENT] if waits else []
    order = deliveries.c.next_at, deliveries.c.created_at, deliveries.c.id
    row = connection.execute(sa.select(deliveries).where(*due).order_by(*order).limit(1)).one()
    until = deliveries.update().where(deliveries.c.id == row.id)
    connection.execute(until.values(taken_until=now + TAKEN_SECONDS))
    keys = (hook.secret, hook.old_secret if hook.old_until > now else None)
    return DueMessage(row.id, webhook, row.event, row.body, hook.url, tuple(filter(None, keys)))


ATTEMPT_SECONDS = 15.0  # of an attempt as a whole


def attempt_delivery(
    client: OutboundClient, taken: DueMessage, seconds: float = ATTEMPT_SECONDS
) -> DeliveryOutcome:
    """Attempt a delivery. Of the answer only the status is kept, since its body may be anything."""
    body = taken.body.encode()
    headers = {"Content-Type": "application/json"}
    if taken.secrets:
        headers |= signing.sign_headers(taken.id, time.time(), body, taken.secrets)
    try:
        answer = client.post(taken.url, headers, body, seconds)
    except UrlRefused as error:
        return DeliveryOutcome(error.detail)
    return _of(answer)


def _of(answer: OutgoingAnswer) -> DeliveryOutcome:
    if HTTPStatus(200) <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        return DeliveryOutcome()
    detail = f"expected the status 2xx, found {answer.status}"
    if 300 <= answer.status < 400:
        detail += ": redirects are not followed"
    pause = _pause(answer.headers.get("retry-after", ""))
    return DeliveryOutcome(detail, gone=answer.status == HTTPStatus.GONE, pause=pause)


def _pause(text: str) -> float:
    """Seconds of a Retry-After, which may be a date; 0 where it is neither."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0
