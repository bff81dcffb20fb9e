"""From runs that have ended to messages for the webhooks that listen."""

import json
import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from service.contract.api.field_types import rfc3339
from service.contract.api.urls import TEST_EVENT
from service.contract.askers import Asker
from service.engine.outgoing import announcements, deliveries
from service.engine.outgoing import webhooks as hooks
from service.engine.parts import Parts
from service.engine.records import Records
from service.engine.tables import webhooks
from service.runs.outgoing import messages, slack

_AT_ONCE = 50


def announce(parts: Parts) -> int:
    """Make messages of what was noted, some at once; returns of how many runs. Several processes
    may do this: one run is announced by one of them.
    """
    with parts.records.reading() as connection:
        noted = announcements.noted(connection, _AT_ONCE)
    for row in noted:
        _announce(parts.asked_by(Asker(team=row.team)), row)
    return len(noted)


def test(records: Records, identity: str) -> None:
    """Add a message by which a team sees whether its webhook tasks."""
    with records.transaction() as connection:
        hook = hooks.find(connection, identity)
        text = f"a test of Prescore's webhook {identity}"
        data = {
            "type": TEST_EVENT,
            "timestamp": rfc3339(time.time()),
            "data": {"webhook": identity},
        }
        body = json.dumps({"text": text} if hook.format == "slack" else data)
        deliveries.add(connection, identity, hook.team, TEST_EVENT, body)


def _announce(parts: Parts, noted: Row[Any]) -> None:
    run = messages.ended(parts, noted.run_id)
    with parts.records.transaction() as connection:
        if not announcements.take(connection, noted.run_id) or run is None:
            return
        listening = (webhooks.c.disabled_because.is_(None),)
        query = sa.select(webhooks).where(*listening, webhooks.c.created_at <= noted.at)
        for hook in connection.execute(query).all():
            write = slack.message if hook.format == "slack" else messages.standard
            for event in run.events:
                if event in json.loads(hook.events):
                    body = write(run, event, hook.place, parts.public_url or hook.place)
                    deliveries.add(connection, hook.id, hook.team, event, body)
