"""Captions of an evaluation that are found by texts, images and scores, and sorted by a score."""

import json
import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass

from prescore.models.captions import Caption, CaptionPage, CaptionWording, ScoreDistribution
from service.contract.errors import InvalidRequest, NotFound, UnknownMetric
from service.contract.metrics import catalogue
from service.engine.service_parts import ServiceParts
from service.runs import run_lists, scored_captions, word_index
from service.runs.scored_captions import NamedPair, ScoredCaptions

_BLOCK = 1000


@dataclass(frozen=True)
class CaptionQuery:
    """Filters and an order of captions. `sort` is a metric, after a `-` for the highest first; the
    bounds are of its scores.
    """

    sort: str | None = None
    search: str | None = None
    image: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    invented: str | None = None
    missed: str | None = None

    @property
    def given(self) -> list[str]:
        """The names of what is asked for."""
        return [name for name, value in vars(self).items() if value is not None]


EVERY_CAPTION = CaptionQuery()  # in the dataset's order


def find_caption_page(
    parts: ServiceParts, identity: str, wanted: CaptionQuery, limit: int, cursor: str | None
) -> CaptionPage:
    """A page of these captions. A cursor is of the same question alone."""
    of = f"captions of {identity}: {json.dumps(astuple(wanted))}"
    start = 0 if cursor is None else run_lists.read_cursor(of, cursor, int)[0]
    found = scored_captions.find_scored_captions(parts, identity)
    chosen, distribution = _select_places(found, wanted)
    end = start + limit
    return CaptionPage(
        items=found.some_rows(chosen[start:end]),
        next=run_lists.write_cursor(of, end) if end < len(chosen) else None,
        matching=len(chosen),
        distribution=distribution if cursor is None else None,
        wording=_find_first_wording(found, wanted) if cursor is None else None,
    )


def _find_first_wording(found: ScoredCaptions, wanted: CaptionQuery) -> CaptionWording | None:
    """The wording of all captions, which the caption of one image does not wait for."""
    return None if wanted.image is not None else word_index.find_wording(found)


def select_captions(found: ScoredCaptions, wanted: CaptionQuery) -> Iterator[Caption]:
    """All these captions, a block of them in memory at a time."""
    chosen, _ = _select_places(found, wanted)
    return (row for block in _blocks(chosen) for row in found.some_rows(block))


def select_named(found: ScoredCaptions, wanted: CaptionQuery) -> Iterator[NamedPair]:
    """The same, with name and id of their images instead of scores."""
    chosen, _ = _select_places(found, wanted)
    return (named for block in _blocks(chosen) for named in found.some_named(block))


def _select_places(
    found: ScoredCaptions, wanted: CaptionQuery
) -> tuple[Sequence[int], ScoreDistribution | None]:
    """The places of these captions in the file, in their order, and how the scores by which they
    are sorted are distributed.
    """
    metric = _metric(found, wanted)
    matching: Sequence[int] = range(len(found.index.places))
    if wanted.image is not None:
        matching = _of_image(found, wanted.image)
    if wanted.search is not None:
        matching = list(_containing(found, matching, wanted.search))
    for kind, word in (("invented", wanted.invented), ("missed", wanted.missed)):
        if word is not None:
            matching = word_index.filter_places(found, matching, kind, word)
    if metric is None:
        return matching, None
    scores = found.column(metric)
    scored, missing = part_places(matching, scores)
    distribution = count_distribution([scores[at] for at in scored], len(missing))
    if wanted.at_least is not None or wanted.at_most is not None:
        low = -math.inf if wanted.at_least is None else wanted.at_least
        high = math.inf if wanted.at_most is None else wanted.at_most
        matching = [at for at in scored if low <= scores[at] <= high]
    descending = wanted.sort is not None and wanted.sort.startswith("-")
    return order_places(matching, scores, descending=descending), distribution


def _metric(found: ScoredCaptions, wanted: CaptionQuery) -> str | None:
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
    return find_metric(
        name,
        found.scores,
        "sort",
        unknown=f"captions are sorted by the scores that they have: {there}",
        absent=f"captions have no score of their own by {name!r:.200}; they have: {there}",
    )


def _of_image(found: ScoredCaptions, image: str) -> Sequence[int]:
    """The place of an image's caption, if it has one."""
    with found.split.places() as places:
        place = places.get(image)
    if place is None:
        raise NotFound(f"{image!r:.200} is not an image of {found.pinned}")
    return [at for at, each in enumerate(found.index.places) if each == place]


def _containing(found: ScoredCaptions, places: Sequence[int], text: str) -> Iterator[int]:
    """Yield the places whose caption or image's name contains a text, in any case."""
    folded = text.casefold()
    for block in _blocks(places):
        for at, (pair, (image, _)) in zip(block, found.some_named(block), strict=True):
            if folded in pair.caption.casefold() or folded in image.casefold():
                yield at


def _blocks(places: Sequence[int]) -> Iterable[Sequence[int]]:
    return (places[at : at + _BLOCK] for at in range(0, len(places), _BLOCK))


def find_metric(
    name: str, there: Collection[str], parameter: str, *, unknown: str, absent: str
) -> str:
    """The full name of a metric that is `there`. `unknown`: what is said beside the catalogue's own
    words where no metric is called so; `absent`: where there is one, and it is not there.
    """
    try:
        full = catalogue.find_metric(name).name
    except UnknownMetric as error:
        told = f"{error.detail}; {unknown}"
        raise UnknownMetric(told, pointer=f"/query/{parameter}", name=name) from None
    if full not in there:
        raise NotFound(absent)
    return full


_BINS = 30


def order_places(places: Iterable[int], values: Sequence[float], *, descending: bool) -> list[int]:
    """The places by their value. Equal ones stay in their order; those whose value is not a finite
    number come last either way.
    """
    found, missing = part_places(places, values)
    return [*sorted(found, key=values.__getitem__, reverse=descending), *missing]


def part_places(places: Iterable[int], values: Sequence[float]) -> tuple[list[int], list[int]]:
    """The places with a finite value, and those without one."""
    found: list[int] = []
    missing: list[int] = []
    for place in places:
        (found if math.isfinite(values[place]) else missing).append(place)
    return found, missing


def count_distribution(values: Sequence[float], missing: int) -> ScoreDistribution:
    """Count finite values in bins; `missing`: the number of captions without a value."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    width = (high - low) / _BINS
    edges = [*(low + width * at for at in range(_BINS)), high]
    counts = [0] * _BINS
    for value in values:
        counts[min(bisect_right(edges, value), _BINS) - 1] += 1
    return ScoreDistribution(edges=edges, counts=counts, missing=missing)
