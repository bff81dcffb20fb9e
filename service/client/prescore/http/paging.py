"""Lists of any length: the next page is fetched when all items of a page were taken."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

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
    while True:
        page = transport.parsed(_Page, transport.send(Request("GET", path, params=query)))
        with transport.understood(model):
            found = [model.model_validate(item) for item in page.items]
        yield from found
        if page.next is None:
            return
        query["cursor"] = page.next
