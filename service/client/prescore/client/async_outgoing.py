"""What `AsyncClient` asks of URLs; `outgoing` explains its methods."""
# ruff: noqa: A002  `id` and `format` are the contract's words

from collections.abc import Sequence

from prescore.client.listing import AsyncListing
from prescore.http.addresses import Address
from prescore.http.async_transport import AsyncTransport
from prescore.models import Dataset, Webhook, WebhookSecret
from prescore.routes import asking, life, outgoing


class AsyncOutgoing:
    _address: Address
    _transport: AsyncTransport

    async def fetch_dataset(self, name: str, url: str, digest: str) -> Dataset:
        return await self._transport.run(outgoing.fetched(self._address, name, url, digest))

    async def make_webhook(
        self, url: str, *, events: Sequence[str] | None = None, format: str | None = None
    ) -> WebhookSecret:
        return await self._transport.run(outgoing.made(self._address, url, events, format))

    def webhooks(self) -> AsyncListing[Webhook]:
        return AsyncListing(self._transport, "webhooks", outgoing.listed(self._address))

    async def webhook(self, id: str) -> Webhook:
        return await self._transport.run(asking.gotten(self._address, Webhook, outgoing.place(id)))

    async def rotate_webhook(self, id: str) -> WebhookSecret:
        return await self._transport.run(outgoing.rotated(self._address, id))

    async def test_webhook(self, id: str) -> Webhook:
        return await self._transport.run(outgoing.tested(self._address, id))

    async def delete_webhook(self, id: str) -> None:
        await self._transport.run(life.deleted(self._address, outgoing.place(id)))
