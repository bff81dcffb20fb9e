"""Sender of webhooks: beside the janitor, whose rounds wait for no receiver.

Several processes may do this. One that is killed loses nothing: what it was sending is sent again.
"""

import json
import threading
import time
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Row

from service.contract.api.field_types import rfc3339
from service.contract.api.urls import TEST_EVENT
from service.contract.askers import Asker
from service.engine import history
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.engine.tables import webhooks
from service.outbound.client import OutboundClient
from service.webhooks import deliveries, messages, registry
from service.webhooks.deliveries import DueMessage

log = structlog.get_logger()

PERIOD = 1.0  # seconds between two looks
_AT_ONCE = 8  # attempts, each in a thread


class WebhookSender:
    def __init__(self, parts: ServiceParts, client: OutboundClient) -> None:
        self._parts = parts
        self._client = client
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Send until this process ends."""
        threading.Thread(target=self._run, name="webhooks", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._ended.clear()
            try:
                self.round()
            except Exception:
                log.exception("webhooks were not sent; the next round tries again")
            self._ended.wait(PERIOD)

    def round(self) -> int:
        """Announce what has ended, and begin to send what is due; returns how many are begun."""
        announce_ended_runs(self._parts)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        free = _AT_ONCE - len(self._threads)
        taken = deliveries.take_due_messages(self._parts.records, time.time(), free) if free else []
        for each in taken:
            thread = threading.Thread(target=self._send, args=(each,), daemon=True)
            self._threads.append(thread)
            thread.start()
        return len(taken)

    def join(self) -> None:
        """Wait for what is being sent."""
        for thread in self._threads:
            thread.join()

    def _send(self, taken: DueMessage) -> None:
        try:
            outcome = deliveries.attempt_delivery(self._client, taken)
            deliveries.end_attempt(self._parts.records, taken, outcome, time.time())
            if outcome.error is not None:
                told = {"webhook": taken.webhook, "message": taken.id, "type": taken.event}
                log.warning("a webhook failed", **told, error=outcome.error)
        except Exception:
            log.exception("a webhook was not sent", webhook=taken.webhook, message=taken.id)
        finally:
            self._ended.set()


_ANNOUNCED_AT_ONCE = 50


def announce_ended_runs(parts: ServiceParts) -> int:
    """Make messages of some ended runs; returns of how many. Each is announced once."""
    with parts.records.reading() as connection:
        noted = history.list_ended_runs(connection, _ANNOUNCED_AT_ONCE)
    for row in noted:
        _announce(parts.asked_by(Asker(team=row.team)), row)
    return len(noted)


def add_test_message(records: Records, identity: str) -> None:
    """Add a message by which a team sees whether its webhook works."""
    with records.transaction() as connection:
        hook = registry.find_webhook(connection, identity)
        text = f"a test of Prescore's webhook {identity}"
        data = {
            "type": TEST_EVENT,
            "timestamp": rfc3339(time.time()),
            "data": {"webhook": identity},
        }
        body = json.dumps({"text": text} if hook.format == "slack" else data)
        deliveries.add_delivery(connection, identity, hook.team, TEST_EVENT, body)


def _announce(parts: ServiceParts, noted: Row[Any]) -> None:
    listening = (webhooks.c.disabled_because.is_(None),)
    query = sa.select(webhooks).where(*listening, webhooks.c.created_at <= noted.at)
    with parts.records.reading() as connection:
        formats = {hook.format for hook in connection.execute(query)}
    run = messages.describe_ended_run(parts, noted.run_id, with_drops="slack" in formats)
    with parts.records.transaction() as connection:
        if not history.take_ended_run(connection, noted.run_id) or run is None:
            return
        for hook in connection.execute(query).all():
            write = (
                messages.format_slack_message
                if hook.format == "slack"
                else messages.format_standard_message
            )
            for event in run.events:
                if event in json.loads(hook.events):
                    body = write(run, event, hook.place, parts.public_url or hook.place)
                    deliveries.add_delivery(connection, hook.id, hook.team, event, body)
