"""Sends what webhooks are to be told: beside the janitor, whose rounds wait for no receiver.

Several processes may do this. One that is killed loses nothing: what it was sending is sent again.
"""

import threading
import time

import structlog

from service.engine.outgoing import attempts, deliveries
from service.engine.outgoing.client import Client
from service.engine.outgoing.deliveries import Taken
from service.engine.parts import Parts
from service.runs.outgoing import announcing

log = structlog.get_logger()

PERIOD = 1.0  # seconds between two looks
_AT_ONCE = 8  # attempts, each in a thread


class Sender:
    def __init__(self, parts: Parts, client: Client) -> None:
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
        announcing.announce(self._parts)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        free = _AT_ONCE - len(self._threads)
        taken = deliveries.take(self._parts.records, time.time(), free) if free else []
        for each in taken:
            thread = threading.Thread(target=self._send, args=(each,), daemon=True)
            self._threads.append(thread)
            thread.start()
        return len(taken)

    def join(self) -> None:
        """Wait for what is being sent."""
        for thread in self._threads:
            thread.join()

    def _send(self, taken: Taken) -> None:
        try:
            outcome = attempts.attempt(self._client, taken)
            deliveries.end(self._parts.records, taken, outcome, time.time())
            if outcome.error is not None:
                told = {"webhook": taken.webhook, "message": taken.id, "type": taken.event}
                log.warning("a webhook failed", **told, error=outcome.error)
        except Exception:
            log.exception("a webhook was not sent", webhook=taken.webhook, message=taken.id)
        finally:
            self._ended.set()
