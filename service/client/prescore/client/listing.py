"""Lists of any length: the next page is fetched when all items of a page were taken."""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Generic, Self, TypeVar

from prescore.client.frames import frame, row
from prescore.counts import counted
from prescore.http.async_transport import AsyncTransport
from prescore.http.paging import Page
from prescore.http.steps import Steps
from prescore.http.transport import Transport
from prescore.models import Answer, BoardHead, Score, Scored

M = TypeVar("M", bound=Answer)
S = TypeVar("S", bound=Scored)


class Scores(dict[str, Score]):
    """Scores by the names of their metrics."""

    def __repr__(self) -> str:
        return f"<Scores of {counted(len(self), 'metric')}>"

    def to_rows(self) -> list[dict[str, Any]]:
        return [{"metric": name, **row(score)} for name, score in self.items()]

    def to_frame(self) -> Any:
        """A pandas.DataFrame with a row for each metric."""
        return frame(self.to_rows(), index="metric")


class Listing(Iterator[M], Generic[M]):
    """What is listed, fetched page by page during the iteration."""

    def __init__(self, transport: Transport, name: str, steps: Steps[None]) -> None:
        self._pages: Iterator[Page] = transport.iterate(steps)
        self._name = name
        self._page: Page | None = None
        self._items: Iterator[M] = iter(())

    def __repr__(self) -> str:
        return f"<Listing of {self._name}: iterate, or take to_rows() or to_frame()>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> M:
        while True:
            for item in self._items:
                return item
            self._turn(next(self._pages))

    def to_rows(self) -> list[dict[str, Any]]:
        """The rest of the list, each item as a dict of plain values."""
        return _rows(self)

    def to_frame(self) -> Any:
        """The rest of the list as a pandas.DataFrame."""
        return frame(self.to_rows())

    def _turn(self, page: Page) -> None:
        self._page = page
        self._items = iter(page.items)


class Board(Listing[S], Generic[S]):
    """A leaderboard or a history."""

    @property
    def head(self) -> BoardHead:
        """What it says of all its rows; fetches its first page."""
        if self._page is None:
            self._turn(next(self._pages))
        assert self._page is not None
        return BoardHead.model_validate(self._page.head)


class AsyncListing(Generic[M]):
    """What is listed, fetched page by page during the iteration with `async for`."""

    def __init__(self, transport: AsyncTransport, name: str, steps: Steps[None]) -> None:
        self._pages: AsyncIterator[Page] = transport.iterate(steps)
        self._name = name
        self._page: Page | None = None
        self._items: Iterator[M] = iter(())

    def __repr__(self) -> str:
        return f"<AsyncListing of {self._name}: `async for`, or await to_rows() or to_frame()>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> M:
        while True:
            for item in self._items:
                return item
            self._turn(await anext(self._pages))

    async def to_rows(self) -> list[dict[str, Any]]:
        """The rest of the list, each item as a dict of plain values."""
        return _rows([item async for item in self])

    async def to_frame(self) -> Any:
        """The rest of the list as a pandas.DataFrame."""
        return frame(await self.to_rows())

    def _turn(self, page: Page) -> None:
        self._page = page
        self._items = iter(page.items)


class AsyncBoard(AsyncListing[S], Generic[S]):
    """A leaderboard or a history."""

    async def head(self) -> BoardHead:
        """What it says of all its rows; fetches its first page."""
        if self._page is None:
            self._turn(await anext(self._pages))
        assert self._page is not None
        return BoardHead.model_validate(self._page.head)


def _rows(items: Iterable[Answer]) -> list[dict[str, Any]]:
    return [row(item) for item in items]
