"""Captions of an evaluation that are found by texts, images and scores, and sorted by a score."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass

from prescore.models.captions import Caption, CaptionPage, ScoreDistribution
from service.contract.errors import InvalidRequest, NotFound
from service.engine.service_parts import ServiceParts
from service.runs import answered, search
from service.runs.answered import Answered
from service.runs.browsing import asked, ordering

_BLOCK = 1000


@dataclass(frozen=True)
class Wanted:
    """Which captions, in which order. `sort` is a metric, after a `-` for the highest first; the
    bounds are of its scores.
    """

    sort: str | None = None
    search: str | None = None
    image: str | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def given(self) -> list[str]:
        """The names of what is asked for."""
        return [name for name, value in vars(self).items() if value is not None]


EVERY = Wanted()  # in the dataset's order


def page(
    parts: ServiceParts, identity: str, wanted: Wanted, limit: int, cursor: str | None
) -> CaptionPage:
    """A page of these captions. A cursor is of the same question alone."""
    of = f"captions of {identity}: {json.dumps(astuple(wanted))}"
    start = 0 if cursor is None else search.read_cursor(of, cursor, int)[0]
    found = answered.of(parts, identity)
    chosen, distribution = _chosen(found, wanted)
    end = start + limit
    return CaptionPage(
        items=found.some_rows(chosen[start:end]),
        next=search.write_cursor(of, end) if end < len(chosen) else None,
        matching=len(chosen),
        distribution=distribution if cursor is None else None,
    )


def rows(found: Answered, wanted: Wanted) -> Iterator[Caption]:
    """All these captions, a block of them in memory at a time."""
    chosen, _ = _chosen(found, wanted)
    return (row for block in _blocks(chosen) for row in found.some_rows(block))


def _chosen(found: Answered, wanted: Wanted) -> tuple[Sequence[int], ScoreDistribution | None]:
    """The places of these captions in the file, in their order, and how the scores by which they
    are sorted are distributed.
    """
    metric = _metric(found, wanted)
    matching: Sequence[int] = range(len(found.index.places))
    if wanted.image is not None:
        matching = _of_image(found, wanted.image)
    if wanted.search is not None:
        matching = list(_containing(found, matching, wanted.search))
    if metric is None:
        return matching, None
    scores = found.column(metric)
    scored, missing = ordering.parted(matching, scores)
    distribution = ordering.distribution([scores[at] for at in scored], len(missing))
    if wanted.at_least is not None or wanted.at_most is not None:
        low = -math.inf if wanted.at_least is None else wanted.at_least
        high = math.inf if wanted.at_most is None else wanted.at_most
        matching = [at for at in scored if low <= scores[at] <= high]
    descending = wanted.sort is not None and wanted.sort.startswith("-")
    return ordering.ordered(matching, scores, descending=descending), distribution


def _metric(found: Answered, wanted: Wanted) -> str | None:
    """The metric by which captions are sorted."""
    if wanted.sort is None:
        for name in ("at_least", "at_most"):
            if name in wanted.given:
                raise InvalidRequest(
                    f"{name} is a bound of the score by which captions are sorted: expected "
                    f"`sort` beside it",
                    [(f"/query/{name}", "expected `sort` beside it")],
                )
        return None
    name = wanted.sort.removeprefix("-")
    there = ", ".join(found.scores) or "none yet"
    return asked.metric(
        name,
        found.scores,
        "sort",
        unknown=f"captions are sorted by the scores that they have: {there}",
        absent=f"captions have no score of their own by {name!r:.200}; they have: {there}",
    )


def _of_image(found: Answered, image: str) -> Sequence[int]:
    """The place of an image's caption, if it has one."""
    with found.split.places() as places:
        place = places.get(image)
    if place is None:
        raise NotFound(f"{image!r:.200} is not an image of {found.pinned}")
    return [at for at, each in enumerate(found.index.places) if each == place]


def _containing(found: Answered, places: Sequence[int], text: str) -> Iterator[int]:
    """Of these places, those whose caption or image's name contains a text, in any case."""
    folded = text.casefold()
    for block in _blocks(places):
        pairs = found.index.read(block)
        names = found.items.names([pair.place for pair in pairs])
        for at, pair, (image, _) in zip(block, pairs, names, strict=True):
            if folded in pair.caption.casefold() or folded in image.casefold():
                yield at


def _blocks(places: Sequence[int]) -> Iterable[Sequence[int]]:
    return (places[at : at + _BLOCK] for at in range(0, len(places), _BLOCK))
