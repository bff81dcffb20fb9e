"""Comparisons of two evaluations: checking and planning a request, and its answer."""

import heapq
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from prescore.models.captions import Caption
from prescore.models.comparisons import (
    Compared,
    ComparedImagePage,
    Comparison,
    ImageCompared,
    Moved,
)
from prescore.models.evaluations import Evaluation
from prescore.models.identifiers import COMPARISON
from prescore.models.metrics import Score
from service.contract import results
from service.contract.api.analyses import ComparisonRequest
from service.contract.errors import InvalidRequest, NotFound
from service.contract.formats.strict_json import replace_infinite
from service.contract.metrics import catalogue, signatures
from service.contract.plan import planning
from service.contract.plan.planning import Plan
from service.contract.plan.tasks import Blob, Task
from service.contract.results import ComparisonSummary, StoredComparison
from service.engine.service_parts import ServiceParts
from service.runs import (
    caption_search,
    caption_words,
    evaluations,
    run_lists,
    run_store,
    scored_captions,
)
from service.runs.run_store import NewRun, RunKind, RunView
from service.runs.scored_captions import ScoredCaptions
from service.stored.datasets import PinnedSplit

_COLUMNS = "columns"
_MOST = 20  # images on which two systems differ most


@dataclass(frozen=True)
class _ComparedSide:
    """One of the two evaluations, with all its scores."""

    name: str
    evaluation: Evaluation
    scores: Mapping[str, Score]


def begin_comparison(parts: ServiceParts, request: ComparisonRequest) -> NewRun:
    sides = [
        _ComparedSide(
            name, evaluations.get_evaluation(parts, id_), evaluations.read_scores(parts, id_)
        )
        for name, id_ in (("a", request.a), ("b", request.b))
    ]
    a, b = (evaluations.find_split(parts, side.evaluation) for side in sides)
    _check_dataset(a, b)
    names = _names(request, sides)
    for place, name in enumerate(names):
        pointer = f"/metrics/{place}" if request.metrics is not None else ""
        _check_metric(name, sides, pointer)
    if any(catalogue.find_metric(name).family == "postgen" for name in names):
        _check_images(parts, request)
    plan = _plan(parts, names, sides, a)
    kept = {**request.model_dump(), "metrics": names}
    others = request.a, request.b
    return NewRun(KIND.new_id(), KIND.name, kept, a, plan, [], request.deadline, others=others)


def _answer(parts: ServiceParts, looked: RunView) -> Comparison:
    request = looked.request(StoredComparison)
    found: dict[str, Compared] = {}
    for at in looked.tasks:
        summed = results.parse_summary(at, ComparisonSummary)
        found |= {} if summed is None else summed.comparison
    full = {name: catalogue.find_metric(name).name for name in request.metrics}
    scores = {name: _compared(found[of]) for name, of in full.items() if of in found}
    over = looked.row.status == "succeeded" and looked.whole
    return Comparison(
        **looked.common,
        a=request.a,
        b=request.b,
        scores=scores,
        images=_images(parts, request, list(scores)) if over else [],
    )


def _check_dataset(a: PinnedSplit, b: PinnedSplit) -> None:
    if a.has_references_of(b):
        return
    field = "split" if a.split != b.split else "captions"
    other = "another split" if field == "split" else "which has other captions"
    raise InvalidRequest(
        f"a and b are not of the same images: a is on {a}, b is on {b}, {other}",
        [("/b", f"expected an evaluation of the same {field}")],
    )


def _names(request: ComparisonRequest, sides: Sequence[_ComparedSide]) -> list[str]:
    if request.metrics is not None:
        return catalogue.expand_groups(request.metrics)
    a, b = (side.evaluation.scores for side in sides)
    names = [name for name in a if name in b and catalogue.is_summed(name)]
    if not names:
        raise InvalidRequest(
            f"{request.a} and {request.b} have no score in common{_so_far(sides)}",
            [("", "expected two evaluations that both show a metric")],
        )
    return names


def _so_far(sides: Sequence[_ComparedSide]) -> str:
    return "" if all(run_store.is_over(side.evaluation) for side in sides) else " yet"


def _check_metric(name: str, sides: Sequence[_ComparedSide], pointer: str) -> None:
    if not catalogue.is_summed(name):
        raise InvalidRequest(
            f"{name} cannot be compared: it is no sum or mean over images",
            [(pointer, f"expected a post-gen metric, or one of {', '.join(catalogue.SUMMED)}")],
        )
    full = catalogue.find_metric(name).name
    for side in sides:
        if full not in side.scores:
            raise InvalidRequest(
                run_store.explain_missing(
                    side.evaluation, f"score {name}", task=catalogue.find_metric_task(full)
                ),
                [(pointer or f"/{side.name}", "expected a metric that both have")],
            )
    a, b = sides
    names = a.name, b.name
    differs = signatures.describe_signature_difference(
        a.scores[full].signature, b.scores[full].signature, names
    )
    if differs is not None:
        advice = ("/metrics", "expected the names of metrics that were computed alike in both")
        raise InvalidRequest(
            f"{name} of a and of b was not computed alike: {differs}",
            [(pointer, differs) if pointer else advice],
        )


def _check_images(parts: ServiceParts, request: ComparisonRequest) -> None:
    paths = [scored_captions.find_captions_path(parts, of) for of in (request.a, request.b)]
    every = zip_longest(*map(scored_captions.read_pairs, paths))
    if any(a is None or b is None or a.place != b.place for a, b in every):
        a, b = ({pair.place for pair in scored_captions.read_pairs(path)} for path in paths)
        raise InvalidRequest(
            f"a and b answer different images: {len(a - b)} that b does not, "
            f"{len(b - a)} that a does not",
            [("/b", "expected captions of the same images")],
        )


def _plan(
    parts: ServiceParts, names: Sequence[str], sides: Sequence[_ComparedSide], pinned: PinnedSplit
) -> Plan:
    """The plan: a task for each post-gen family, and one for all pre-gen metrics."""
    specs = [catalogue.find_metric(name) for name in names]
    pregen = [spec.name for spec in specs if spec.family == "pregen"]
    families = catalogue.list_metric_tasks(spec.name for spec in specs if spec.family == "postgen")
    named: dict[str, Task] = {}
    for family in [*families, *([_COLUMNS] if pregen else [])]:
        found = [run_store.find_result(parts.records, side.evaluation.id, family) for side in sides]
        a, b = (_blob_of(digest, family, side) for digest, side in zip(found, sides, strict=True))
        compared = pregen if family == _COLUMNS else ()
        named[family] = planning.plan_comparison(a, b, pinned.people, compared)
    return Plan(named)


def _blob_of(digest: str | None, family: str, side: _ComparedSide) -> Blob:
    if digest is None:
        raise InvalidRequest(
            run_store.explain_missing(side.evaluation, family, task=family),
            [(f"/{side.name}", f"expected an evaluation whose {family} are done")],
        )
    return Blob(digest)


def _compared(found: Compared) -> Compared:
    return found.model_copy(update={"a": replace_infinite(found.a), "b": replace_infinite(found.b)})


def _images(parts: ServiceParts, request: StoredComparison, names: Sequence[str]) -> list[Moved]:
    if all(catalogue.find_metric(name).family == "pregen" for name in names):
        return []
    try:
        a, b = (
            scored_captions.find_scored_captions(parts, side) for side in (request.a, request.b)
        )
    except NotFound:  # an evaluation was deleted
        return []
    both = [name for name in names if name in a.scores and name in b.scores]
    most = _most([(a.column(name), b.column(name)) for name in both])
    rows = zip(a.some_rows(most), b.some_rows(most), strict=True)
    return [compare_image(*row, both) for row in rows]


def _most(columns: Iterable[tuple[Sequence[float], Sequence[float]]]) -> list[int]:
    """The places of images that differ most, by difference relative to the metric's usual one,
    which is the root mean square over images. `columns`: both scores of all images, by metric.
    """
    moves: array[float] = array("d")
    for a, b in columns:
        moves = moves or array("d", bytes(8 * len(a)))
        differences = array("d", (_apart(*scores) for scores in zip(a, b, strict=True)))
        usual = math.hypot(*differences) / math.sqrt(len(differences))
        if usual > 0:
            moves = array(
                "d", (max(m, abs(d) / usual) for m, d in zip(moves, differences, strict=True))
            )
    order = heapq.nsmallest(_MOST, range(len(moves)), key=lambda place: -moves[place])
    return [place for place in order if moves[place] > 0]


def _apart(a: float, b: float) -> float:
    return a - b if math.isfinite(a) and math.isfinite(b) else 0.0


def compare_image(a: Caption, b: Caption, names: Sequence[str]) -> Moved:
    """Both captions of an image, with their scores by these metrics."""
    scores = {name: _difference(a.scores[name], b.scores[name]) for name in names}
    exchanges = sorted(caption_words.find_exchanges(a.caption, b.caption))
    return Moved(image=a.image, a=a.caption, b=b.caption, scores=scores, exchanges=exchanges)


def _difference(a: float | None, b: float | None) -> ImageCompared:
    difference = None if a is None or b is None else a - b
    return ImageCompared(a=a, b=b, difference=difference)


KIND = RunKind(
    name="comparison",
    prefix=COMPARISON,
    noun="comparison",
    place="/v1/comparisons",
    out=Comparison,
    answer=_answer,
)


def build_image_page(
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
        request = run_store.load_run(connection, identity, KIND).request(StoredComparison)
    names = [catalogue.find_metric(name).name for name in request.metrics]
    wanted = None if metric is None else find_asked_metric(metric, names)
    a, b = (scored_captions.find_scored_captions(parts, side) for side in (request.a, request.b))
    both = [name for name in names if name in a.scores and name in b.scores]
    shown = choose_caption_metric(identity, both, wanted)
    of = f"images of {identity} by {shown}, {sort}"
    start = 0 if cursor is None else run_lists.read_cursor(of, cursor, int)[0]
    places = _places(a, b, shown, sort)
    end = start + limit
    rows = (side.some_rows(places[start:end], [shown]) for side in (a, b))
    return ComparedImagePage(
        items=[compare_image(one, other, [shown]) for one, other in zip(*rows, strict=True)],
        next=run_lists.write_cursor(of, end) if end < len(places) else None,
        metric=shown,
    )


def find_asked_metric(name: str, names: Sequence[str]) -> str:
    """The full name of a metric, which is one of the comparison's."""
    there = ", ".join(names)
    return caption_search.find_metric(
        name,
        names,
        "metric",
        unknown=f"this comparison is by {there}",
        absent=f"this comparison is not by {name!r:.200}; it is by {there}",
    )


def choose_caption_metric(identity: str, there: Sequence[str], wanted: str | None) -> str:
    """The metric whose scores of captions are shown: by default the first that there is."""
    if not there or wanted not in (None, *there):
        which = wanted or "any metric of this comparison"
        raise NotFound(
            f"the captions that {identity} compares have no scores of their own by {which}"
        )
    return wanted or there[0]


def _places(a: ScoredCaptions, b: ScoredCaptions, metric: str, sort: str | None) -> Sequence[int]:
    """The places of all images in the files of captions, which have the same images."""
    every = range(len(a.index.places))
    if sort is None:
        return every
    scores = a.column(metric), b.column(metric)
    by = sort.removeprefix("-")
    values = scores["ab".index(by)] if by != "difference" else _differences(*scores)
    return caption_search.order_places(every, values, descending=sort != by)


def _differences(a: Sequence[float], b: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(a, b, strict=True)]
