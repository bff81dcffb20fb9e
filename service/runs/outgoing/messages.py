"""The message of an event of a run: small, with the addresses of all else."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import sqlalchemy as sa

from prescore.models.evaluations import Evaluation
from prescore.models.webhooks import WebhookEvent
from service.contract.api.field_types import rfc3339
from service.contract.errors import NotFound
from service.engine.parts import Parts
from service.engine.tables import runs
from service.runs.kinds import KINDS

_GATES = 20  # and as many labels and scores: a message has less than 20 kB
_SCORES = 20
_LABELS = 20
_LABEL = 100  # characters of a label's value

_COLUMNS = ("kind", "status", "finished_at", "dataset_name", "dataset_version", "split")


@dataclass(frozen=True)
class Ended:
    """What is told of a run that has ended; `gates` with their verdicts."""

    id: str
    kind: str
    status: str
    dataset: str
    at: float
    path: str
    verdict: str | None = None
    gates: Sequence[tuple[str, str | None]] = ()
    scores: dict[str, float | None] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def page(self, pages: str) -> str | None:
        """Where the page shows it, which is at the URL `pages`; None where it does not."""
        return f"{pages}/ui/evaluations/{self.id}" if self.kind == "evaluation" else None

    @property
    def events(self) -> list[WebhookEvent]:
        found = [f"run.{self.status}"]
        if self.verdict is not None:
            found.append(f"verdict.{self.verdict}")
        return found  # type: ignore[return-value]


def ended(parts: Parts, identity: str) -> Ended | None:
    """None where the run was deleted meanwhile."""
    query = sa.select(*(runs.c[name] for name in _COLUMNS)).where(runs.c.id == identity)
    with parts.records.reading() as connection:
        row = connection.execute(query).first()
    if row is None:
        return None
    kind = KINDS[row.kind].kind
    dataset = f"{row.dataset_name}@v{row.dataset_version}/{row.split}"
    shown = identity, row.kind, row.status, dataset, row.finished_at, f"{kind.place}/{identity}"
    try:
        answer, _ = kind.look(parts, identity)
    except NotFound:
        return None
    return Ended(*shown, **_of_evaluation(answer)) if row.kind == "evaluation" else Ended(*shown)


def _of_evaluation(found: Evaluation) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "gates": [(one.gate, one.verdict) for one in found.gates[:_GATES]],
        "scores": {name: one.value for name, one in islice(found.scores.items(), _SCORES)},
        "labels": {
            name: text[:_LABEL] for name, text in islice(sorted(found.labels.items()), _LABELS)
        },
    }


def standard(run: Ended, event: WebhookEvent, place: str, pages: str) -> str:
    """JSON in ASCII; `place` is the service's own URL, `pages` that of its page."""
    data = {
        "id": run.id,
        "kind": run.kind,
        "status": run.status,
        "dataset": run.dataset,
        "verdict": run.verdict,
        "gates": [{"gate": gate, "verdict": verdict} for gate, verdict in run.gates],
        "scores": run.scores,
        "labels": run.labels,
        "url": f"{place}{run.path}",
        "page": run.page(pages),
    }
    return json.dumps({"type": event, "timestamp": rfc3339(run.at), "data": data})
