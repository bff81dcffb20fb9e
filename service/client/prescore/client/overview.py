"""What `Client` asks of single images, and of labels, queues, workers and keys."""
# ruff: noqa: A002  `id` is the contract's word

from prescore.client.listing import Listing
from prescore.http.addresses import Address
from prescore.http.transport import Transport
from prescore.models import Key, Label, Me, Moved, Queue, References, Worker
from prescore.routes import overview


class Overview:
    _address: Address
    _transport: Transport

    def compared_images(
        self,
        id: str,
        *,
        metric: str | None = None,
        sort: str | None = None,
        page_size: int | None = None,
    ) -> Listing[Moved]:
        """Every image of a comparison, with both captions and their scores by one metric, by
        default the comparison's first.

        `sort`: "difference", "a" or "b", after a `-` the highest first; by default the dataset's
        order.
        """
        steps = overview.compared_images(self._address, id, metric, sort, page_size)
        return Listing(self._transport, f"images of {id}", steps)

    def references(self, dataset: str, image: str) -> References:
        """What people have written about an image of `name` or `name@version`."""
        return self._transport.run(overview.references(self._address, dataset, image))

    def labels(self, dataset: str | None = None) -> tuple[Label, ...]:
        """The labels that your team's latest evaluations have, on NAME[@VERSION][/SPLIT] or all."""
        return self._transport.run(overview.labels(self._address, dataset))

    def queues(self) -> tuple[Queue, ...]:
        """What waits to be computed."""
        return self._transport.run(overview.queues(self._address))

    def workers(self) -> tuple[Worker, ...]:
        """Who works."""
        return self._transport.run(overview.workers(self._address))

    def me(self) -> Me:
        """Your team, what your key allows, and how much of its limits is used."""
        return self._transport.run(overview.me(self._address))

    def keys(self, *, page_size: int | None = None) -> Listing[Key]:
        """Your team's keys without their texts, the latest first. Needs the scope admin."""
        return Listing(self._transport, "keys", overview.keys(self._address, page_size))
