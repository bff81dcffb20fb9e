"""Evaluations that need attention: they failed, their gates failed, they say one caption for most
images, or their scores fell.
"""

import time
from datetime import timedelta
from itertools import islice
from typing import Any

from sqlalchemy.engine import Row

from prescore.models.evaluations import Fall, Gate, GateScore
from prescore.models.overviews import (
    DAYS_LOOKED_AT,
    LATEST_LOOKED_AT,
    AttentionGate,
    AttentionItem,
    AttentionKind,
    AttentionList,
)
from service.contract.api.field_types import moment
from service.contract.metrics import catalogue
from service.contract.results import StoredEvaluation
from service.engine.service_parts import ServiceParts
from service.engine.tables import runs
from service.runs import evaluations, run_store, training_falls, verdicts
from service.runs.run_store import RunView


def list_attention(parts: ServiceParts, limit: int) -> AttentionList:
    """List those of the latest evaluations that need attention, the one that ended last first."""
    since = time.time() - timedelta(days=DAYS_LOOKED_AT).total_seconds()
    latest = (
        run_store.ROW.where(
            runs.c.kind == evaluations.KIND.name,
            runs.c.created_at >= since,
        )
        .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        .limit(LATEST_LOOKED_AT)
    )
    with parts.records.reading() as connection:
        rows = [row for row in connection.execute(latest) if _may_need(row)]
        looked = run_store.load_runs(connection, rows, whole=False)
    looked.sort(key=lambda one: (one.row.finished_at, one.row.id), reverse=True)
    found = (item for one in looked if (item := _find_reason(one)) is not None)
    return AttentionList(items=list(islice(found, limit)))


def _may_need(row: Row[Any]) -> bool:
    """Tell whether an evaluation may need attention: of few, their tasks are read."""
    if row.status != "succeeded":
        return bool(row.status == "failed")
    return row.collapsed or row.falls is not None or not row.may_be_baseline


def _find_reason(looked: RunView) -> AttentionItem | None:
    """Find the first reason why an evaluation needs attention; None without any."""
    row, request = looked.row, looked.request(StoredEvaluation)
    if row.status == "failed":
        return _build_item(looked, "failed", error=looked.common["error"])
    if request.gates and not row.may_be_baseline:
        judged, verdict = verdicts.decide_gates(looked.tasks, request)
        failed = next((gate for gate in judged if gate.verdict == "failed"), None)
        if verdict == "failed" and failed is not None:
            return _build_item(looked, "gate", gate=_describe_gate(failed))
    caption = verdicts.find_repeated_caption(verdicts.read_decoded(looked.tasks), request)
    if caption is not None:
        return _build_item(looked, "collapsed", caption=caption)
    if row.falls is not None:
        largest = max(training_falls.read_falls(row.falls), key=_measure_share)
        return _build_item(looked, "fall", fall=largest)
    return None


def _build_item(looked: RunView, kind: AttentionKind, **reason: Any) -> AttentionItem:
    row = looked.row
    return AttentionItem(
        kind=kind,
        evaluation=row.id,
        labels=dict(looked.labels),
        dataset=looked.common["dataset"],
        at=moment(row.finished_at),
        **{"fall": None, "gate": None, "caption": None, "error": None, **reason},
    )


def _describe_gate(gate: Gate) -> AttentionGate:
    worst = min(gate.scores, key=lambda name: _measure_loss(name, gate.scores[name]), default=None)
    score = None if worst is None else gate.scores[worst]
    return AttentionGate(
        gate=gate.gate,
        detail=gate.detail,
        metric=worst,
        difference=None if score is None else score.difference,
        interval=None if score is None else score.difference_interval,
    )


def _measure_loss(metric: str, score: GateScore) -> float:
    """Measure the change of a score as a share of its baseline, below 0 for the worse."""
    if score.difference is None:
        return 0.0
    change = catalogue.find_metric(metric).sign * score.difference
    return change / abs(score.baseline) if score.baseline else change


def _measure_share(fall: Fall) -> float:
    return abs(fall.value - fall.expected) / (abs(fall.expected) or 1.0)
