"""The images of a comparison: both captions of each, and their scores by one metric."""

from collections.abc import Sequence

from prescore.models.comparisons import ComparedImagePage
from service.contract.errors import NotFound
from service.contract.metrics import catalogue
from service.contract.results import StoredComparison
from service.engine.service_parts import ServiceParts
from service.runs import answered, base, comparisons, search
from service.runs.answered import Answered
from service.runs.browsing import asked, ordering


def page(
    parts: ServiceParts,
    identity: str,
    metric: str | None,
    sort: str | None,
    limit: int,
    cursor: str | None,
) -> ComparedImagePage:
    """A page of all images, in the dataset's order, or sorted by `difference`, `a` or `b`, after a
    `-` for the highest first.
    """
    with parts.records.reading() as connection:
        request = base.look(connection, identity, comparisons.KIND).request(StoredComparison)
    names = [catalogue.find_metric(name).name for name in request.metrics]
    wanted = None if metric is None else _asked(metric, names)
    a, b = (answered.of(parts, side) for side in (request.a, request.b))
    both = [name for name in names if name in a.scores and name in b.scores]
    shown = _shown(identity, both, wanted)
    of = f"images of {identity} by {shown}, {sort}"
    start = 0 if cursor is None else search.read_cursor(of, cursor, int)[0]
    places = _places(a, b, shown, sort)
    end = start + limit
    rows = (side.some_rows(places[start:end], [shown]) for side in (a, b))
    return ComparedImagePage(
        items=[comparisons.image(one, other, [shown]) for one, other in zip(*rows, strict=True)],
        next=search.write_cursor(of, end) if end < len(places) else None,
        metric=shown,
    )


def _asked(name: str, names: Sequence[str]) -> str:
    there = ", ".join(names)
    return asked.metric(
        name,
        names,
        "metric",
        unknown=f"this comparison is by {there}",
        absent=f"this comparison is not by {name!r:.200}; it is by {there}",
    )


def _shown(identity: str, there: Sequence[str], wanted: str | None) -> str:
    if not there or wanted not in (None, *there):
        which = wanted or "any metric of this comparison"
        raise NotFound(
            f"the captions that {identity} compares have no scores of their own by {which}"
        )
    return wanted or there[0]


def _places(a: Answered, b: Answered, metric: str, sort: str | None) -> Sequence[int]:
    """The places of all images in the files of captions, which have the same images."""
    every = range(len(a.index.places))
    if sort is None:
        return every
    scores = a.column(metric), b.column(metric)
    by = sort.removeprefix("-")
    values = scores["ab".index(by)] if by != "difference" else _differences(*scores)
    return ordering.ordered(every, values, descending=sort != by)


def _differences(a: Sequence[float], b: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(a, b, strict=True)]
