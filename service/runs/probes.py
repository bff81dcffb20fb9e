"""Probes of a dataset: checking and planning a request, its answer, and metrics' health."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.identifiers import PROBES
from prescore.models.metrics import MetricHealth
from prescore.models.probes import Probes
from service.contract import results
from service.contract.api.analyses import ProbesRequest
from service.contract.askers import Scope
from service.contract.plan import metric_requests, planning
from service.contract.results import HealthSummary, ProbeSummary, TaskRow
from service.engine import summaries
from service.engine.service_parts import ServiceParts
from service.engine.tables import labels, runs
from service.runs import evaluations, run_store, training
from service.runs.run_store import NewRun, RunKind, RunView
from service.stored import datasets
from service.stored.datasets import PinnedSplit

_PRIVATE = {
    "code": "not_for_health",
    "image": None,
    "detail": "these probes do not become the health of the split's metrics: that needs a key with "
    f"the scope {Scope.PUBLISH}",
}
_CONSTANT = "single", "single sentence"  # a probe, and its row of the best sentence
_PROBED, _USUAL = "probed ", "usual"  # a label's name, before the metric's; and its value


def begin_probes(parts: ServiceParts, request: ProbesRequest) -> NewRun:
    pinned = datasets.pin_split(parts.records, request.dataset)
    captions, warnings = _captions(parts, request, pinned)
    metrics, models = training.resolve_models(parts, request.metrics, "/metrics")
    request = request.model_copy(update={"metrics": metrics})
    wanted, reasons = metric_requests.gather_probes(
        list(dict.fromkeys(request.probes)),
        request.metrics,
        parts.places,
        tokenizer=request.tokenizer,
        options=_options(request),
        splits=pinned.splits,
        split=pinned.split,
        captions=captions,
        models=models,
    )
    plan = planning.plan_probes(pinned.captions, pinned.split, wanted)
    kept = {**request.model_dump(exclude={"captions"}), "captions": captions}
    unavailable = [
        {"code": "unavailable", "image": None, "detail": f"{n}: {r}"} for n, r in reasons.items()
    ]
    marks = _marks(request)
    private = bool(marks) and not parts.asker.scope.includes(Scope.PUBLISH)
    every = [*unavailable, *warnings, *([_PRIVATE] if private else [])]
    return NewRun(
        KIND.new_id(),
        KIND.name,
        kept,
        pinned,
        plan,
        every,
        request.deadline,
        labels={} if private else marks,
        others=[] if request.evaluation is None else [request.evaluation],
    )


def _answer(parts: ServiceParts, looked: RunView) -> Probes:  # noqa: ARG001  the signature of all kinds
    tables = {at["name"]: results.parse_summary(at, ProbeSummary) for at in looked.tasks}
    health = next(
        filter(None, (results.parse_summary(at, HealthSummary) for at in looked.tasks)), None
    )
    return Probes(
        **looked.common,
        probes={name: table.rows for name, table in tables.items() if table is not None},
        health=None if health is None else health.health,
    )


def _captions(
    parts: ServiceParts, request: ProbesRequest, pinned: PinnedSplit
) -> tuple[str | None, Sequence[Mapping[str, Any]]]:
    if request.captions is not None:
        return datasets.store_captions(
            parts.blobs, request.captions, pinned, subset=None, tokenizer=request.tokenizer
        )
    if request.evaluation is None:
        return None, []
    return evaluations.find_captions_on(parts, request.evaluation, pinned, "/evaluation"), []


def _options(request: ProbesRequest) -> dict[str, dict[str, Any]]:
    """The request's options by probe, without those that have their default."""
    given = request.options
    options: dict[str, dict[str, Any]] = {"single": {"objective": given.objective}}
    if given.frequent is not None:
        options["frequent"] = {"frequent": given.frequent}
    if given.swaps is not None:
        options["swap"] = {"swaps": [list(pair) for pair in given.swaps]}
    return options


def _marks(request: ProbesRequest) -> dict[str, str]:
    """Labels by which health finds the metrics of probes that anybody would run: the usual ones,
    without captions of one's own.
    """
    usual = ProbesRequest(dataset=request.dataset)
    same = ("tokenizer", "options", "evaluation", "captions")
    whole = set(request.probes) >= set(usual.probes)
    if whole and all(getattr(request, name) == getattr(usual, name) for name in same):
        return dict.fromkeys((f"{_PROBED}{name}" for name in request.metrics), _USUAL)
    return {}


def find_health(connection: Connection, dataset: PinnedSplit) -> dict[str, MetricHealth] | None:
    """Each metric's health from the probes of a split that succeeded, or None.

    Only the usual probes count: others may be made to say what one likes, and a metric that the
    latest ones leave out keeps its health.
    """
    return _join_health(_read_latest_tasks(connection, dataset))


def find_references(
    connection: Connection, dataset: PinnedSplit
) -> tuple[dict[str, MetricHealth] | None, str | None]:
    """Each metric's health, and the best single sentence for all images, from the latest usual
    probes that have one.
    """
    tasks = list(_read_latest_tasks(connection, dataset))
    return _join_health(tasks), _find_constant_caption(tasks)


def _join_health(probed: Iterable[Sequence[TaskRow]]) -> dict[str, MetricHealth] | None:
    """Join the health that tasks of probes tell, of which the first are the latest."""
    found: dict[str, MetricHealth] = {}
    for rows in probed:
        told = next(filter(None, (results.parse_summary(row, HealthSummary) for row in rows)), None)
        found = {**({} if told is None else told.health), **found}
    return found or None


def _find_constant_caption(probed: Iterable[Sequence[TaskRow]]) -> str | None:
    for task in chain.from_iterable(probed):
        table = results.parse_summary(task, ProbeSummary)
        for row in () if table is None else table.rows:
            if (row.probe, row.name) == _CONSTANT and row.text:
                return row.text
    return None


def _read_latest_tasks(connection: Connection, dataset: PinnedSplit) -> Iterator[list[Any]]:
    """The tasks of the latest usual probes of each metric, the latest first."""
    latest = _find_latest(connection, dataset)
    snapshots = sa.select(runs.c.snapshot).where(runs.c.id.in_(latest))
    latest_first = snapshots.order_by(runs.c.finished_at.desc(), runs.c.id)
    for snapshot in connection.execute(latest_first).scalars():
        yield [] if snapshot is None else summaries.unpack_json(snapshot)


def _find_latest(connection: Connection, dataset: PinnedSplit) -> list[str]:
    """Find the latest usual probes of each metric: few, however many others there are."""
    query = (
        sa.select(runs.c.id, labels.c.name)
        .join(labels, labels.c.run_id == runs.c.id)
        .where(
            runs.c.kind == KIND.name, run_store.match_split(dataset), runs.c.status == "succeeded"
        )
        .where(labels.c.value == _USUAL, labels.c.name.startswith(_PROBED))
        .order_by(runs.c.finished_at.desc())
    )
    latest: dict[str, str] = {}
    for row in connection.execute(query):
        latest.setdefault(row.name, row.id)
    return list(dict.fromkeys(latest.values()))


KIND = RunKind(
    name="probes",
    prefix=PROBES,
    noun="probes",
    place="/v1/probes",
    out=Probes,
    answer=_answer,
)
