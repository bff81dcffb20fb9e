"""Requests for images, labels, queues, workers and keys."""

from prescore.http import paging
from prescore.http.addresses import Address
from prescore.http.steps import Steps, segment
from prescore.models import (
    Caption,
    Comparison,
    Key,
    Label,
    Me,
    Moved,
    Queue,
    References,
    Worker,
)
from prescore.models.overview import Labels, Queues, Workers
from prescore.routes import asking, evaluations


def captions(
    address: Address,
    id_: str,
    texts: tuple[str | None, str | None, str | None],
    bounds: tuple[float | None, float | None],
    page_size: int | None,
) -> Steps[None]:
    """Pages of captions. `texts`: the order, what is searched, and an image."""
    (sort, search, image), (low, high) = texts, bounds
    params = asking.given(sort=sort, search=search, image=image, at_least=low, at_most=high)
    params |= asking.given(limit=page_size)
    return paging.pages(address, Caption, f"{evaluations.place(id_)}/captions", params)


def compared_images(
    address: Address, id_: str, metric: str | None, sort: str | None, page_size: int | None
) -> Steps[None]:
    params = asking.given(metric=metric, sort=sort, limit=page_size)
    return paging.pages(address, Moved, f"{asking.of(Comparison, id_)}/images", params)


def references(address: Address, dataset: str, image: str) -> Steps[References]:
    name, of = segment(dataset), segment(image)
    return asking.gotten(address, References, f"/v1/datasets/{name}/images/{of}/references")


def labels(address: Address, dataset: str | None) -> Steps[tuple[Label, ...]]:
    found = yield from asking.gotten(address, Labels, "/v1/labels", asking.given(dataset=dataset))
    return found.items


def queues(address: Address) -> Steps[tuple[Queue, ...]]:
    return (yield from asking.gotten(address, Queues, "/v1/queues")).items


def workers(address: Address) -> Steps[tuple[Worker, ...]]:
    return (yield from asking.gotten(address, Workers, "/v1/workers")).items


def me(address: Address) -> Steps[Me]:
    return asking.gotten(address, Me, "/v1/me")


def keys(address: Address, page_size: int | None) -> Steps[None]:
    return paging.pages(address, Key, "/v1/keys", asking.given(limit=page_size))
