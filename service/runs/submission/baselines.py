"""Baselines: for each metric, the earlier evaluation with which gates compare a new one.

Found once, when an evaluation is submitted, and stored with its request.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.api.runs import DatasetPinned
from service.contract.api.scores import ScoreOut
from service.contract.metrics import catalogue
from service.contract.results import EvaluationKept, Past
from service.runs import base, evaluations, pairs, search
from service.stored.datasets import Pinned
from service.works import scores
from service.works.blobs import Blobs
from service.works.parts import Parts
from service.works.tables import runs, score_rows
from service.works.verdicts import NOT_FINITE

_BEST = "best"
_LOOKED_AT = 20  # at most so many evaluations are searched for one with the metric


@dataclass(frozen=True)
class Sought:
    """The requested baseline: `best`, an evaluation's id, or label=value. `images` are the places
    of the images that have captions in the new evaluation; None: all.
    """

    text: str
    dataset: Pinned
    images: frozenset[int] | None


def find(parts: Parts, sought: Sought, metrics: Iterable[str]) -> dict[str, Past]:
    """The baseline of each metric."""
    with parts.records.reading() as connection:
        past = _Search(connection, parts, sought)
        return {name: past.kept(name) for name in metrics}


@dataclass(frozen=True)
class _Found:
    """A possible baseline, as it ended or as it is now."""

    id: str
    dataset: DatasetPinned
    rows: Sequence[Mapping[str, Any]]
    scores: Mapping[str, ScoreOut]
    is_partial: bool


@dataclass(frozen=True)
class _Search:
    connection: Connection
    parts: Parts
    sought: Sought
    known: dict[str, _Found] = field(default_factory=dict)

    def kept(self, metric: str) -> Past:
        reasons = []
        for identity in self._candidates(metric):
            past = self._past(identity)
            reason = self._unfit(past, metric)
            if reason is None:
                return _entry(past, metric)
            reasons.append(f"{identity} {reason}")
        if reasons:
            return Past(none_because=reasons[0])
        return Past(none_because=f"no baseline yet: {self._none_found()}", is_first=True)

    def _none_found(self) -> str:
        wanted, dataset = self.sought.text, self.sought.dataset
        return (
            f"no evaluation of {dataset} has this score"
            if wanted == _BEST
            else f"no evaluation of {dataset} with the label {wanted} has succeeded"
        )

    def _candidates(self, metric: str) -> Sequence[str]:
        """Ids of possible baselines, in the order in which to try them."""
        wanted = self.sought.text
        name, is_label, value = wanted.partition("=")
        if is_label:
            return self._labelled(name, value)
        return self._best(metric) if wanted == _BEST else [wanted]

    def _succeeded(self) -> sa.Select[str]:
        return sa.select(runs.c.id).where(
            runs.c.kind == evaluations.KIND.name,
            base.on_split(self.sought.dataset),
            runs.c.status == "succeeded",
        )

    def _labelled(self, name: str, value: str) -> Sequence[str]:
        marked = search.having({name: value})
        latest = self._succeeded().where(*marked).order_by(runs.c.created_at.desc())
        return self.connection.execute(latest.limit(_LOOKED_AT)).scalars().all()

    def _best(self, metric: str) -> Sequence[str]:
        """Evaluations by score, the best first, with the latest evaluation's signature."""
        spec = catalogue.metric(metric)
        query = (
            self._succeeded()
            .join(score_rows, score_rows.c.run_id == runs.c.id)
            .where(
                score_rows.c.metric.in_(catalogue.names_of(metric)),
                score_rows.c.value.is_not(None),
            )
        )
        newest = query.add_columns(score_rows.c.signature).order_by(runs.c.created_at.desc())
        latest = self.connection.execute(newest.limit(1)).first()
        if latest is None:
            return []
        value = score_rows.c.value
        order = value.desc() if spec.higher_is_better else value
        best = query.where(score_rows.c.signature == latest.signature).order_by(order)
        return list(dict.fromkeys(self.connection.execute(best.limit(_LOOKED_AT)).scalars()))

    def _past(self, identity: str) -> _Found:
        if identity not in self.known:
            found = base.look(self.connection, identity, evaluations.KIND)
            self.known[identity] = _Found(
                identity,
                found.common["dataset"],
                found.works,
                scores.brought(found.works),
                is_partial=found.row.checkpoint is None and found.request(EvaluationKept).subset,
            )
        return self.known[identity]

    def _unfit(self, past: _Found, metric: str) -> str | None:
        """Why an evaluation cannot be the baseline of a metric; None if it can."""
        ours, theirs = self.sought.dataset, past.dataset
        if (theirs.digest, theirs.split) != (ours.digest, ours.split):
            return f"is of {theirs.name}@{theirs.version}/{theirs.split}, and not of {ours}"
        score = past.scores.get(catalogue.metric(metric).name)
        if score is None:
            return f"has no {metric}"
        if score.value is None:
            return f"is no baseline for {metric}: {NOT_FINITE}"
        if self.sought.images != self._images(past):
            return "has captions of other images of the split"
        return None

    def _images(self, past: _Found) -> frozenset[int] | None:
        digest = evaluations.captions_of(self.parts, past.id) if past.is_partial else None
        return answered(self.parts.blobs, digest, self.sought.dataset)


def answered(blobs: Blobs, captions: str | None, dataset: Pinned) -> frozenset[int] | None:
    """The places of the images that have captions; None: all images of the split."""
    if captions is None:
        return None
    places = frozenset(pair.place for pair in pairs.read(blobs.path(captions, check=False)))
    return None if len(places) == dataset.images else places


def _entry(found: _Found, metric: str) -> Past:
    score = found.scores[catalogue.metric(metric).name]
    results = {row["name"]: row["result"] for row in found.rows}
    return Past(
        evaluation=found.id,
        value=score.value,
        interval=score.interval,
        signature=score.signature,
        result=results.get(by_image(metric)),
    )


def by_image(metric: str) -> str:
    """The name of the work whose result has the metric for each image."""
    return "columns" if catalogue.metric(metric).family == "pregen" else catalogue.work_of(metric)
