"""The client for programs with asyncio; `blocking` explains its methods."""
# ruff: noqa: A002, ASYNC109  `id` is the contract's word, `timeout` is that of `Client`

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from prescore.client.async_analyses import AsyncAnalyses
from prescore.client.async_outgoing import AsyncOutgoing
from prescore.client.async_overview import AsyncOverview
from prescore.client.connecting import PATIENCE_SECONDS, address
from prescore.client.listing import AsyncListing, Scores
from prescore.http import events, paging, polling, uploads
from prescore.http.async_transport import AsyncTransport
from prescore.http.polling import OnChange
from prescore.http.uploads import Progress
from prescore.models import (
    Caption,
    Change,
    Checkpoint,
    Columns,
    Dataset,
    Evaluation,
    Event,
    Metric,
    Tokens,
)
from prescore.routes import analyses, asking, evaluations, life, overview, stored
from prescore.routes.evaluations import Submission


class AsyncClient(AsyncAnalyses, AsyncOutgoing, AsyncOverview):
    """Talks to a Prescore service, for programs with asyncio.

        async with prescore.AsyncClient() as client:
            digest = await client.upload_checkpoint("epoch-08.safetensors")
            evaluation = await client.submit("flickr8k/test", checkpoint=digest)
            print((await client.wait(evaluation.id)).scores["cider_d"].value)
            async for standing in client.leaderboard("flickr8k/test"):
                print(standing.rank, standing.evaluation)

    Its methods are those of `Client`: what answers once is awaited, lists and events are iterated
    with `async for`. Many calls may be under way at the same time, in one event loop.
    """

    def __init__(
        self, url: str | None = None, key: str | None = None, *, patience: float = PATIENCE_SECONDS
    ) -> None:
        self._address = address(url, key, patience)
        self._transport = AsyncTransport(self._address)

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.aclose()

    @property
    def url(self) -> str:
        return self._address.url

    # Checkpoints

    async def upload_checkpoint(self, path: str | Path, progress: Progress | None = None) -> str:
        return await self._run(uploads.stored_checkpoint(self._address, Path(path), progress))

    async def has_checkpoint(self, digest: str) -> bool:
        return await self._run(stored.has(self._address, stored.checkpoint(digest)))

    async def checkpoint(self, digest: str) -> Checkpoint:
        return await self._run(asking.gotten(self._address, Checkpoint, stored.checkpoint(digest)))

    # Columns

    async def upload_columns(self, path: str | Path, progress: Progress | None = None) -> str:
        return await self._run(uploads.stored_columns(self._address, Path(path), progress))

    async def has_columns(self, digest: str) -> bool:
        return await self._run(stored.has(self._address, stored.columns(digest)))

    async def columns(self, digest: str) -> Columns:
        return await self._run(asking.gotten(self._address, Columns, stored.columns(digest)))

    # Datasets

    async def add_dataset(
        self, name: str, bundle: str | Path, progress: Progress | None = None
    ) -> Dataset:
        return await self._run(stored.added_dataset(self._address, name, Path(bundle), progress))

    async def add_pictures(
        self, name: str, folder: str | Path, progress: Progress | None = None
    ) -> Dataset:
        return await self._run(stored.added_pictures(self._address, name, Path(folder), progress))

    async def show_pictures(self, name: str, *, shown: bool = True) -> Dataset:
        return await self._run(stored.changed(self._address, name, {"pictures_shown": shown}))

    async def image(self, name: str, image: str, size: int = 320) -> bytes:
        return await self._run(stored.picture(self._address, name, image, size))

    def datasets(self) -> AsyncListing[Dataset]:
        steps = paging.pages(self._address, Dataset, "/v1/datasets")
        return AsyncListing(self._transport, "datasets", steps)

    async def dataset(self, name: str) -> Dataset:
        return await self._run(asking.gotten(self._address, Dataset, stored.dataset(name)))

    async def fetch_captions(self, name: str, path: str | Path) -> None:
        await self._run(stored.fetched_captions(self._address, name, Path(path)))

    # Evaluations

    async def submit(self, dataset: str, **asked: Unpack[Submission]) -> Evaluation:
        return await self._run(evaluations.begun(self._address, dataset, asked))

    async def evaluation(self, id: str) -> Evaluation:
        return await self._run(asking.gotten(self._address, Evaluation, evaluations.place(id)))

    def evaluations(
        self,
        *,
        dataset: str | None = None,
        status: str | None = None,
        labels: Mapping[str, str] | None = None,
        page_size: int | None = None,
    ) -> AsyncListing[Evaluation]:
        return AsyncListing(
            self._transport,
            "evaluations",
            analyses.listed(
                self._address,
                Evaluation,
                dataset=dataset,
                status=status,
                labels=labels,
                page_size=page_size,
            ),
        )

    async def cancel(self, id: str) -> Evaluation:
        return await self._run(asking.canceled(self._address, Evaluation, id))

    async def change(
        self, id: str, *, labels: Mapping[str, str | None] | None = None, note: str | None = None
    ) -> Evaluation:
        return await self._run(life.changed(self._address, id, labels, note))

    async def delete_evaluation(self, id: str) -> None:
        await self._run(life.deleted(self._address, evaluations.place(id)))

    async def delete_checkpoint(self, digest: str) -> None:
        await self._run(life.deleted(self._address, stored.checkpoint(digest)))

    async def delete_columns(self, digest: str) -> None:
        await self._run(life.deleted(self._address, stored.columns(digest)))

    async def delete_dataset(self, name: str) -> None:
        await self._run(life.deleted(self._address, stored.dataset(name)))

    def audit(
        self, *, action: str | None = None, of: str | None = None, page_size: int | None = None
    ) -> AsyncListing[Change]:
        steps = life.audit(self._address, action, of, page_size)
        return AsyncListing(self._transport, "changes", steps)

    async def wait(
        self,
        id: str,
        timeout: float | None = None,
        on_change: OnChange | None = None,
    ) -> Evaluation:
        place = evaluations.place(id)
        return await self._run(polling.ended(self._address, Evaluation, place, timeout, on_change))

    def events(self, id: str, last_event_id: str | None = None) -> AsyncIterator[Event]:
        place = f"{evaluations.place(id)}/events"
        return self._transport.iterate(events.heard(self._address, place, last_event_id))

    async def pregen(self, id: str) -> Scores:
        return Scores((await self._run(evaluations.pregen(self._address, id))).scores)

    def captions(
        self,
        id: str,
        *,
        sort: str | None = None,
        search: str | None = None,
        image: str | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        page_size: int | None = None,
    ) -> AsyncListing[Caption]:
        texts, bounds = (sort, search, image), (at_least, at_most)
        steps = overview.captions(self._address, id, texts, bounds, page_size)
        return AsyncListing(self._transport, f"captions of {id}", steps)

    async def captions_csv(self, id: str) -> str:
        return await self._run(evaluations.csv(self._address, id))

    async def captions_coco(self, id: str) -> list[dict[str, Any]]:
        return await self._run(evaluations.coco(self._address, id))

    async def tokens(self, id: str, image: str) -> Tokens:
        return await self._run(evaluations.tokens(self._address, id, image))

    async def metrics(self) -> list[Metric]:
        steps = paging.pages(self._address, Metric, "/v1/metrics")
        return [metric async for metric in AsyncListing[Metric](self._transport, "metrics", steps)]
