"""Lists of any length: the next page is fetched when all items of a page were taken."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from prescore.http import answers, bounds, retries
from prescore.http.addresses import Address
from prescore.http.steps import Item, Request, Steps
from prescore.models import Answer

M = TypeVar("M", bound=BaseModel)


class Page(Answer):
    """A part of a list, with what its answer says of the whole list."""

    model_config = ConfigDict(extra="allow")

    items: tuple[Any, ...]
    next: str | None = None

    @property
    def head(self) -> dict[str, Any]:
        return self.model_extra or {}


def pages(
    address: Address, model: type[M], path: str, params: Mapping[str, str] | None = None
) -> Steps[None]:
    """Each page, with its items as models."""
    query = dict(params or {})
    told = 0
    for _ in range(bounds.PAGES):
        found = yield from page(address, model, path, query)
        told += len(found.items)
        _check_length(address, len(found.items), told)
        yield Item(found)
        if found.next is None:
            return
        if not found.items or found.next == query.get("cursor"):
            break
        query["cursor"] = found.next
    what = "expected a list that ends, found one that does not"
    raise answers.not_prescore(address.url, what)


def page(address: Address, model: type[M], path: str, params: Mapping[str, str]) -> Steps[Page]:
    response = yield from retries.sent(address, Request("GET", path, params=params))
    found = answers.parsed(address.url, Page, response)
    _check_length(address, len(found.items), 0)
    with answers.understood(address.url, model):
        origin = answers.origin(address.url, response)
        items = tuple(model.model_validate(item, context=origin) for item in found.items)
    return found.model_copy(update={"items": items})


def _check_length(address: Address, items: int, told: int) -> None:
    if items > bounds.PAGE_ITEMS or told > bounds.LIST_ITEMS:
        raise answers.not_prescore(
            address.url,
            f"expected a list of at most {bounds.LIST_ITEMS} items, {bounds.PAGE_ITEMS} on a "
            f"page; found {max(told, items)}, {items} on a page",
        )
