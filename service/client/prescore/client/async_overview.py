"""What `AsyncClient` asks of images, labels, queues, keys; `overview` explains its methods."""
# ruff: noqa: A002  `id` is the contract's word

from prescore.client.listing import AsyncListing
from prescore.http.addresses import Address
from prescore.http.async_transport import AsyncTransport
from prescore.models import Key, Label, Me, Moved, Queue, References, Worker
from prescore.routes import overview


class AsyncOverview:
    _address: Address
    _transport: AsyncTransport

    def compared_images(
        self,
        id: str,
        *,
        metric: str | None = None,
        sort: str | None = None,
        page_size: int | None = None,
    ) -> AsyncListing[Moved]:
        steps = overview.compared_images(self._address, id, metric, sort, page_size)
        return AsyncListing(self._transport, f"images of {id}", steps)

    async def references(self, dataset: str, image: str) -> References:
        return await self._transport.run(overview.references(self._address, dataset, image))

    async def labels(self, dataset: str | None = None) -> tuple[Label, ...]:
        return await self._transport.run(overview.labels(self._address, dataset))

    async def queues(self) -> tuple[Queue, ...]:
        return await self._transport.run(overview.queues(self._address))

    async def workers(self) -> tuple[Worker, ...]:
        return await self._transport.run(overview.workers(self._address))

    async def me(self) -> Me:
        return await self._transport.run(overview.me(self._address))

    def keys(self, *, page_size: int | None = None) -> AsyncListing[Key]:
        return AsyncListing(self._transport, "keys", overview.keys(self._address, page_size))
