"""Lists of any length, fetched page by page during the iteration, and answers as tables."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from prescore.errors import PrescoreClientError
from prescore.http.answers import build_foreign_error, translate_invalid
from prescore.http.transport import HttpRequest, Transport
from prescore.models import Answer, BoardHead, Score, Scored
from prescore.models.tables import build_frame, format_html
from prescore.plain_text import format_count

PAGE_ITEMS = 10_000
LIST_ITEMS = 5_000_000
PAGES = 100_000  # of one list
SEPARATOR = "."  # of the names of nested fields

M = TypeVar("M", bound=Answer)
S = TypeVar("S", bound=Scored)
InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class NoPandas(PrescoreClientError, ImportError):
    pass


class ListPage(Answer):
    """A part of a list, with what its answer says of the whole list."""

    model_config = ConfigDict(extra="allow")

    items: Annotated[tuple[Any, ...], Field(max_length=PAGE_ITEMS)]
    next: str | None = None


class Scores(dict[str, Score]):
    """Scores by the names of their metrics."""

    def __repr__(self) -> str:
        return f"<Scores of {format_count(len(self), 'metric')}>"

    def to_rows(self) -> list[dict[str, Any]]:
        return [{"metric": name, **score.to_row()} for name, score in self.items()]

    def to_frame(self) -> Any:
        """A pandas.DataFrame with a row for each metric."""
        return _build_frame(self.to_rows(), index="metric")

    def _repr_html_(self) -> str:
        return format_html(repr(self).strip("<>"), self.to_rows())


class Listing(Iterator[M], Generic[M]):
    """A list that is fetched page by page during the iteration."""

    def __init__(
        self, transport: Transport, name: str, model: type[M], path: str, params: Mapping[str, str]
    ) -> None:
        self._name = name
        self._pages = _fetch_pages(transport, model, path, params)
        self._page: ListPage | None = None
        self.items: Iterator[M] = iter(())  # what was fetched and not yet taken

    def __repr__(self) -> str:
        return f"<Listing of {self._name}: iterate, or take to_rows() or to_frame()>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> M:
        while True:
            for item in self.items:
                return item
            if not self.turn():
                raise StopIteration

    def turn(self) -> bool:
        """Fetch the next page; False where there is none."""
        page = next(self._pages, None)
        if page is None:
            return False
        self._page = page
        self.items = iter(page.items)
        return True

    def to_rows(self) -> list[dict[str, Any]]:
        """The rest of the list, each item as a dict of plain values."""
        return [_build_row(item) for item in self]

    def to_frame(self) -> Any:
        """The rest of the list as a pandas.DataFrame."""
        return _build_frame(self.to_rows())


class Board(Listing[S], Generic[S]):
    """A leaderboard or a history."""

    @property
    def head(self) -> BoardHead:
        """The facts about all its rows; fetches its first page."""
        if self._page is None:
            self.turn()
        assert self._page is not None
        return BoardHead.model_validate(self._page.model_extra)

    def _repr_html_(self) -> str | None:
        """The page under way, the first one before the iteration; none takes a row away."""
        try:
            head = self.head
        except PrescoreClientError:
            return None
        assert self._page is not None
        facts = head.metric, f"on {head.dataset}", head.signature or head.none_because or ""
        return format_html(" ".join(facts), [each.to_row() for each in self._page.items])


class AsyncListing(Generic[M]):
    """A list that is fetched page by page during the iteration with `async for`."""

    def __init__(self, listing: Listing[M], in_thread: InThread) -> None:
        self._listing = listing
        self._in_thread = in_thread

    def __repr__(self) -> str:
        named = repr(self._listing).partition(":")[0].removeprefix("<")
        return f"<Async{named}: `async for`, or await to_rows() or to_frame()>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> M:
        while True:
            for item in self._listing.items:
                return item
            if not await self._in_thread(self._listing.turn):
                raise StopAsyncIteration

    async def to_rows(self) -> list[dict[str, Any]]:
        """The rest of the list, each item as a dict of plain values."""
        return [_build_row(item) async for item in self]

    async def to_frame(self) -> Any:
        """The rest of the list as a pandas.DataFrame."""
        return _build_frame(await self.to_rows())


class AsyncBoard(AsyncListing[S], Generic[S]):
    """A leaderboard or a history."""

    def __init__(self, board: Board[S], in_thread: InThread) -> None:
        super().__init__(board, in_thread)
        self._board = board

    async def head(self) -> BoardHead:
        """The facts about all its rows; fetches its first page."""
        head: BoardHead = await self._in_thread(lambda: self._board.head)
        return head


def _fetch_pages(
    transport: Transport, model: type[BaseModel], path: str, params: Mapping[str, str]
) -> Iterator[ListPage]:
    """Each page, with its items as models."""
    query = dict(params)
    items = 0
    for _ in range(PAGES):
        page = _fetch_page(transport, model, path, query)
        items += len(page.items)
        yield page
        if page.next is None:
            return
        if not page.items or page.next == query.get("cursor") or items > LIST_ITEMS:
            break
        query["cursor"] = page.next
    raise build_foreign_error(transport.url, "expected a list that ends, found one that does not")


def _fetch_page(
    transport: Transport, model: type[BaseModel], path: str, query: Mapping[str, str]
) -> ListPage:
    reply = transport.send(HttpRequest("GET", path, params=query))
    page = reply.parsed(ListPage)
    with translate_invalid(transport.url, model):
        items = tuple(model.model_validate(item, context=reply.origin) for item in page.items)
    return page.model_copy(update={"items": items})


def _build_row(answer: BaseModel) -> dict[str, Any]:
    """The fields of an answer, nested ones by names such as `dataset.split`."""
    return dict(_flatten("", answer.model_dump()))


def _flatten(prefix: str, fields: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _flatten(f"{prefix}{name}{SEPARATOR}", value)
        elif name == "interval":
            low, high = value or (None, None)
            yield from ((f"{prefix}low", low), (f"{prefix}high", high))
        else:
            yield f"{prefix}{name}", value


def _build_frame(rows: Iterable[Mapping[str, Any]], index: str | None = None) -> Any:
    """A pandas.DataFrame; raises `NoPandas` where pandas is not installed."""
    try:
        return build_frame(rows, index)
    except ImportError as error:
        raise NoPandas(str(error)) from None
