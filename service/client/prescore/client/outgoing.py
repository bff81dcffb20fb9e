"""What `Client` asks of URLs: webhooks, and datasets that the service fetches."""
# ruff: noqa: A002  `id` and `format` are the contract's words

from collections.abc import Sequence

from prescore.client.listing import Listing
from prescore.http.addresses import Address
from prescore.http.transport import Transport
from prescore.models import Dataset, Webhook, WebhookSecret
from prescore.routes import asking, life, outgoing


class Outgoing:
    _address: Address
    _transport: Transport

    def fetch_dataset(self, name: str, url: str, digest: str) -> Dataset:
        """Let the service fetch a dataset's tar from a URL, as a new version of `name`; `digest`
        is the tar's SHA-256. Refused unless its operator allows that.
        """
        return self._transport.run(outgoing.fetched(self._address, name, url, digest))

    def make_webhook(
        self, url: str, *, events: Sequence[str] | None = None, format: str | None = None
    ) -> WebhookSecret:
        """Let a URL of yours be told of your team's runs from now on. The answer's `secret`, by
        which messages are signed, is told this once: keep it where secrets are kept.

        `events`: "run.succeeded", "run.failed" (these two if none are named), "run.canceled",
        "verdict.passed", "verdict.failed", "verdict.undecided", "verdict.not_comparable".
        `format`: "standard" or "slack". Not repeated after a failure, since that could make two.
        """
        return self._transport.run(outgoing.made(self._address, url, events, format))

    def webhooks(self) -> Listing[Webhook]:
        """Your team's webhooks, the latest first."""
        return Listing(self._transport, "webhooks", outgoing.listed(self._address))

    def webhook(self, id: str) -> Webhook:
        """Whether it is active, what waits, and what went wrong the last times."""
        return self._transport.run(asking.gotten(self._address, Webhook, outgoing.place(id)))

    def rotate_webhook(self, id: str) -> WebhookSecret:
        """Give a webhook another secret; for a day messages are signed by both. Not repeated after
        a failure: rotate again if the answer was lost.
        """
        return self._transport.run(outgoing.rotated(self._address, id))

    def test_webhook(self, id: str) -> Webhook:
        """Let the event webhook.test be sent, once, within seconds: `delivered_at` or `errors` of
        `webhook(id)` then tell what came of it.
        """
        return self._transport.run(outgoing.tested(self._address, id))

    def delete_webhook(self, id: str) -> None:
        """Delete a webhook, with the messages that wait for it."""
        self._transport.run(life.deleted(self._address, outgoing.place(id)))
