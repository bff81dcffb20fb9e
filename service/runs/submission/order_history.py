"""The history of an order of images: the scores of past systems by which images are drawn.

It is found once at submission, and its files are inputs of the task `order`: an equal history makes
an equal order. A checkpoint keeps the history of its first order on a split, so that captions that
are decoded already are used again.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from service.contract.api.evaluations import EvaluationRequest
from service.contract.gates import gates
from service.contract.metrics import catalogue
from service.contract.plan import estimates
from service.contract.plan.estimates import ORDER, OrderHistory
from service.contract.plan.planning import CheckpointPlanner
from service.contract.plan.tasks import Blob, Task
from service.contract.results import StoredEvaluation
from service.engine.service_parts import ServiceParts
from service.engine.tables import run_tasks, runs, task_rows
from service.runs import evaluations, run_store
from service.stored.datasets import PinnedSplit

_READ = 200  # the latest evaluations of a split: older ones are not searched


def find_order_history(
    parts: ServiceParts, request: EvaluationRequest, pinned: PinnedSplit, model: CheckpointPlanner
) -> OrderHistory:
    """Find the digests of past systems' scores by family, for an early verdict on them."""
    named = model.plan().named
    if ORDER not in named:
        return {}
    with parts.records.reading() as connection:
        search = _HistorySearch(connection, parts, pinned)
        kept = search.find_kept(request.checkpoint)
        if kept is not None:
            return kept
        if request.until != "verdict":
            return {}
        gated = set(map(catalogue.find_metric_task, gates.list_gate_metrics(request.gates)))
        sought = [name for name in estimates.list_estimated(named) if name in gated]
        past = {
            name: [*islice(search.list_past(named[name]), estimates.MOST_SYSTEMS)]
            for name in sought
        }
    return {name: each for name, each in past.items() if len(each) >= estimates.FEWEST_SYSTEMS}


@dataclass(frozen=True)
class _HistorySearch:
    connection: Connection
    parts: ServiceParts
    pinned: PinnedSplit

    def find_kept(self, checkpoint: str | None) -> OrderHistory | None:
        """Find the history of the latest order that was drawn for a checkpoint; None if there is
        none, or if a file of it is stored no more.
        """
        query = self._select_tasks(ORDER).where(runs.c.checkpoint == checkpoint).limit(1)
        row = self.connection.execute(query).first()
        if row is None:
            return None
        found = estimates.read_history(json.loads(row.inputs))
        stored = all(self.parts.blobs.has(digest) for each in found.values() for digest in each)
        return found if stored else None

    def list_past(self, ours: Task) -> Iterator[str]:
        """List the distinct stored scores of other captions of the whole split that were computed
        as `ours`, the latest first.
        """
        ended = task_rows.c.status == "done", runs.c.status == "succeeded"
        query = self._select_tasks(ours.kind).where(*ended).limit(_READ)
        rows = self.connection.execute(query).all()
        digests = dict.fromkeys(row.result for row in rows if _is_computed_as(ours, row))
        return (digest for digest in digests if self.parts.blobs.has(digest))

    def _select_tasks(self, kind: str) -> sa.Select[Any]:
        """Select the tasks of a kind of the split's evaluations, the latest first."""
        return (
            sa.select(task_rows.c.key, task_rows.c.inputs, task_rows.c.result, runs.c.request)
            .join(run_tasks, run_tasks.c.task_key == task_rows.c.key)
            .join(runs, runs.c.id == run_tasks.c.run_id)
            .where(
                runs.c.kind == evaluations.KIND.name,
                run_store.match_split(self.pinned),
                task_rows.c.kind == kind,
            )
            .order_by(runs.c.created_at.desc(), runs.c.id)
        )


def _is_computed_as(ours: Task, row: Row[Any]) -> bool:
    """Tell whether a task differs from `ours` in its captions alone, which are of all images."""
    if StoredEvaluation.model_validate_json(row.request).subset:
        return False
    captions = json.loads(row.inputs)["captions"]
    alike = replace(ours, inputs={**ours.inputs, "captions": Blob(captions)})
    return row.key != ours.key and bool(row.key == alike.key)
