"""Lists of any length: the next page is fetched when all items of a page were taken."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from prescore.http import bounds
from prescore.http.transport import Request, Transport
from prescore.models import Answer

M = TypeVar("M", bound=BaseModel)


class _Page(Answer):
    items: tuple[Any, ...]
    next: str | None = None


def items(
    transport: Transport, model: type[M], path: str, params: Mapping[str, str] | None = None
) -> Iterator[M]:
    query = dict(params or {})
    told = 0
    for _ in range(bounds.PAGES):
        page = transport.parsed(_Page, transport.send(Request("GET", path, params=query)))
        told += len(page.items)
        if len(page.items) > bounds.PAGE_ITEMS or told > bounds.LIST_ITEMS:
            raise transport.not_prescore(
                f"expected a list of at most {bounds.LIST_ITEMS} items, {bounds.PAGE_ITEMS} on a "
                f"page; found {told}, {len(page.items)} on a page"
            )
        with transport.understood(model):
            found = [model.model_validate(item) for item in page.items]
        yield from found
        if page.next is None:
            return
        if not page.items or page.next == query.get("cursor"):
            break
        query["cursor"] = page.next
    raise transport.not_prescore("expected a list that ends, found one that does not")
