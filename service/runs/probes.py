"""Probes of a dataset: taken in, and what has come out of them by now."""

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.api.probes import ProbeRow, ProbesOut
from service.contract.api.requests import ProbesIn
from service.contract.api.scores import MetricHealth
from service.contract.plan import asked, planning
from service.contract.plan.assets import Places
from service.runs import base, evaluations
from service.runs.base import Run
from service.stored import datasets
from service.stored.datasets import Pinned
from service.works.blobs import Blobs
from service.works.records import Records
from service.works.tables import evaluations as rows_of_runs


def submit(records: Records, blobs: Blobs, places: Places, request: ProbesIn) -> str:
    """The id of the run."""
    pinned = datasets.pin(records, request.dataset)
    captions, warnings = _captions(records, blobs, request, pinned)
    wanted, reasons = asked.probing(
        list(dict.fromkeys(request.probes)),
        request.metrics,
        places,
        tokenizer=request.tokenizer,
        options=_options(request),
        splits=pinned.splits,
        split=pinned.split,
        captions=captions,
    )
    plan = planning.plan_probes(pinned.digest, pinned.split, wanted)
    identity = f"pb_{secrets.token_urlsafe(18)}"
    kept = request.model_dump(exclude={"captions"})
    told = [
        {"code": "unavailable", "image": None, "detail": f"{n}: {r}"} for n, r in reasons.items()
    ]
    run = Run(identity, kept, pinned, plan, [*told, *warnings], request.deadline)
    with records.transaction() as connection:
        base.insert(connection, records, run)
    return identity


def get(records: Records, identity: str) -> tuple[ProbesOut, int]:
    """The run and its version."""
    with records.reading() as connection:
        row, rows = base.look(connection, identity)
        common = base.answer(connection, row, rows)
    summaries = {
        at["name"]: json.loads(at["summary"])
        for at in rows
        if at["status"] == "done" and at["summary"]
    }
    tables = {name: found["rows"] for name, found in summaries.items() if "rows" in found}
    return ProbesOut(
        **common,
        probes={name: [ProbeRow(**each) for each in table] for name, table in tables.items()},
        health=_health(summaries),
    ), row.version


def _health(summaries: Mapping[str, Mapping[str, Any]]) -> dict[str, MetricHealth] | None:
    found = summaries.get("health", {}).get("health")
    return found and {name: MetricHealth(**health) for name, health in found.items()}


def _captions(
    records: Records, blobs: Blobs, request: ProbesIn, pinned: Pinned
) -> tuple[str | None, Sequence[Mapping[str, Any]]]:
    if request.captions is not None:
        return datasets.store_captions(blobs, request.captions, pinned, subset=False)
    if request.evaluation is None:
        return None, []
    return evaluations.captions_on(records, request.evaluation, pinned, "/evaluation"), []


def _options(request: ProbesIn) -> dict[str, dict[str, Any]]:
    """Those that are not as usual, by the probe that they are for."""
    given = request.options
    options: dict[str, dict[str, Any]] = {"single": {"objective": given.objective}}
    if given.frequent is not None:
        options["frequent"] = {"frequent": given.frequent}
    if given.swaps is not None:
        options["swap"] = {"swaps": [list(pair) for pair in given.swaps]}
    return options


def health_of(connection: Connection, dataset: Pinned) -> dict[str, Any] | None:
    """By metric, of the last probes of a split that came to their end."""
    query = (
        sa.select(rows_of_runs.c.snapshot)
        .where(
            rows_of_runs.c.id.startswith("pb_"),
            rows_of_runs.c.dataset == dataset.out.model_dump_json(),
            rows_of_runs.c.status == "succeeded",
        )
        .order_by(rows_of_runs.c.finished_at.desc())
        .limit(1)
    )
    snapshot = connection.execute(query).scalar()
    for row in json.loads(snapshot or "[]"):
        if row["name"] == "health" and row["summary"]:
            found: dict[str, Any] = json.loads(row["summary"])["health"]
            return found
    return None
