"""Messages to webhooks about ended runs: small, with the URLs of everything else."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import sqlalchemy as sa
import structlog

from prescore.models.comparisons import CaptionDrops
from prescore.models.evaluations import Evaluation, Fall
from prescore.models.webhooks import WebhookEvent
from service.contract.api.field_types import rfc3339
from service.contract.errors import NotFound
from service.engine.service_parts import ServiceParts
from service.engine.tables import runs
from service.runs import caption_drops
from service.runs.kinds import KINDS

log = structlog.get_logger()

_GATES = 20  # and as many labels and scores: a message has less than 20 kB
_SCORES = 20
_LABELS = 20
_LABEL = 100  # characters of a label's value
_FALLS = 6

_COLUMNS = ("kind", "status", "finished_at", "dataset_name", "dataset_version", "split")


@dataclass(frozen=True)
class EndedRun:
    """A run that has ended, as messages show it; `gates` with their verdicts."""

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
    falls: Sequence[Fall] = ()
    drops: CaptionDrops | None = None

    def page(self, pages: str) -> str | None:
        """The URL of its page below `pages`; None for runs that have no page."""
        return f"{pages}/ui/evaluations/{self.id}" if self.kind == "evaluation" else None

    @property
    def events(self) -> list[WebhookEvent]:
        found = [f"run.{self.status}"]
        if self.verdict is not None:
            found.append(f"verdict.{self.verdict}")
        return found  # type: ignore[return-value]


def describe_ended_run(
    parts: ServiceParts, identity: str, *, with_drops: bool = False
) -> EndedRun | None:
    """Describe an ended run for a message; None where the run was deleted meanwhile. `with_drops`:
    with the images that fell most, where its gates did not pass.
    """
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
    if row.kind != "evaluation":
        return EndedRun(*shown)
    drops = _find_drops(parts, answer) if with_drops else None
    return EndedRun(*shown, **_of_evaluation(answer), drops=drops)


def _find_drops(parts: ServiceParts, found: Evaluation) -> CaptionDrops | None:
    if found.verdict not in ("failed", "undecided"):
        return None
    try:
        return caption_drops.find_caption_drops(parts, found)
    except Exception:  # a stored file that cannot be read must not stop messages
        log.exception("the images that fell most were not read", run=found.id)
        return None


def _of_evaluation(found: Evaluation) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "gates": [(one.gate, one.verdict) for one in found.gates[:_GATES]],
        "scores": {name: one.value for name, one in islice(found.scores.items(), _SCORES)},
        "labels": {
            name: text[:_LABEL] for name, text in islice(sorted(found.labels.items()), _LABELS)
        },
        "falls": found.falls[:_FALLS],
    }


def format_standard_message(run: EndedRun, event: WebhookEvent, place: str, pages: str) -> str:
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
        "falls": [_describe_fall(fall) for fall in run.falls],
        "url": f"{place}{run.path}",
        "page": run.page(pages),
    }
    return json.dumps({"type": event, "timestamp": rfc3339(run.at), "data": data})


def _describe_fall(fall: Fall) -> dict[str, Any]:
    """Describe a fall with the id alone of the evaluation beside."""
    beside = None if fall.beside is None else fall.beside.evaluation
    return {**fall.model_dump(mode="json"), "beside": beside}


_SLACK_SCORES = 6
_SLACK_LABELS = ("branch", "commit", "run")  # by which a team knows its runs
_SLACK_LABEL = 60  # characters
_SLACK_FALL = 200
_SLACK_BRACKETS = str.maketrans("[]", "()")
_SLACK_IMAGE = 60
_SLACK_CAPTION = 200
_SLACK_URL = 1000
_POWERFUL = re.compile(r"[^\w .,/+=<>()%'-]")  # \w: letters of all alphabets, digits, _
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def format_slack_message(run: EndedRun, event: WebhookEvent, place: str, pages: str) -> str:
    """JSON; `place` is the service's own URL, `pages` that of its page."""
    line = _line(run, event, run.page(pages) or f"{place}{run.path}")
    lines = [line, *map(_format_fall, run.falls), *_list_drops(run, pages)]
    return json.dumps({"text": "\n".join(lines)}, ensure_ascii=False)


def _line(run: EndedRun, event: WebhookEvent, url: str) -> str:
    dataset = strip_markup(run.dataset.replace("@", " "))
    told = f"{run.kind} {run.id} on {dataset}: {event.rpartition('.')[2]}"
    failed = [gate for gate, verdict in run.gates if verdict not in ("passed", None)]
    parts = [told.replace("not_comparable", "not comparable")]
    if failed:
        parts.append(f"not passed: {', '.join(map(strip_markup, failed))}")
    known = [(name, value) for name, value in run.scores.items() if value is not None]
    parts += [f"{strip_markup(name)} {value:.4g}" for name, value in known[:_SLACK_SCORES]]
    labels = [(name, run.labels[name]) for name in _SLACK_LABELS if name in run.labels]
    parts += [f"{name} {strip_markup(text[:_SLACK_LABEL])}" for name, text in labels]
    return f"{'; '.join(parts)} <{url}|open>"


def _format_fall(fall: Fall) -> str:
    """Format a fall as a line."""
    return f"fall: {strip_markup(fall.sentence().translate(_SLACK_BRACKETS)[:_SLACK_FALL])}"


def _list_drops(run: EndedRun, pages: str) -> Iterator[str]:
    """A line for each image that fell most, with a link."""
    drops, page = run.drops, run.page(pages)
    if drops is None or page is None:
        return
    for each in drops.images:
        metric = drops.metric or ""
        scores = each.scores[metric]
        known = f"{strip_markup(metric)} {_number(scores.b)} to {_number(scores.a)}"
        image = strip_markup(each.image[:_SLACK_IMAGE])
        before, now = (strip_markup(text[:_SLACK_CAPTION]) for text in (each.b, each.a))
        url = drops.build_image_url(page, each.image)
        link = url if len(url) <= _SLACK_URL else page
        yield f"<{link}|{image}>: {known}; before: {before}; now: {now}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def strip_markup(text: str) -> str:
    """Other people's text, without power over what shows it."""
    return _POWERFUL.sub("?", text).translate(_ENTITIES)
