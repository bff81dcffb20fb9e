"""The scores that works have brought, and which of them an evaluation shows."""

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from service.contract.api.evaluations import EstimateOut
from service.contract.api.scores import ScoreOut
from service.contract.gates import gates
from service.contract.metrics import catalogue
from service.contract.plan.estimates import ESTIMATE

Row = Mapping[str, Any]  # a work of an evaluation, as `history.work_statuses` has it


def brought(rows: Sequence[Row], names: Container[str] | None = None) -> dict[str, ScoreOut]:
    """By name, as the works summed them up: a summary has `scores`, their `signature` (one, or by
    name) and, for some of them, `intervals`. All of them, or those of these names: a run may have
    hundreds and show three.
    """
    found: dict[str, ScoreOut] = {}
    for row in rows:
        if row["status"] == "done" and row["summary"]:
            summary = json.loads(row["summary"])
            intervals = summary.get("intervals", {})
            for name, value in summary.get("scores", {}).items():
                if names is not None and name not in names:
                    continue
                score = ScoreOut.of(name, value, summary["signature"], intervals.get(name))
                found.setdefault(name, score)
    return found


def estimated(rows: Sequence[Row]) -> dict[str, EstimateOut]:
    """What the latest look at captions that are being decoded says of all of them, by metric."""
    return {name: EstimateOut(**said) for name, said in _looked(rows)["estimate"].items()}


def expected(rows: Sequence[Row]) -> dict[str, ScoreOut]:
    """The same as the scores that they will be."""
    found = _looked(rows)
    return {
        name: ScoreOut.of(name, said["value"], found["signature"], said["interval"])
        for name, said in found["estimate"].items()
    }


def _looked(rows: Sequence[Row]) -> Mapping[str, Any]:
    summaries = [row["summary"] for row in rows if row["name"] == ESTIMATE]
    found: Mapping[str, Any] = json.loads(next(filter(None, summaries), '{"estimate": {}}'))
    return found


def shown(rows: Sequence[Row], request: Mapping[str, Any]) -> dict[str, ScoreOut]:
    """Those that were asked for by name, in gates too, and, for all pre-gen ones, the headline."""
    wanted: list[str] = []
    if request["checkpoint"] is not None:
        pregen = request["pregen"]
        wanted += catalogue.HEADLINE if pregen in (None, "all") else pregen
    wanted += catalogue.expand(request["postgen"])
    wanted += gates.names(request.get("gates", []))
    full = {name: catalogue.metric(name).name for name in wanted}
    found = brought(rows, set(full.values()))
    return {name: found[of] for name, of in full.items() if of in found}
