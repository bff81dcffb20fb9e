"""Baselines: for each metric, the earlier evaluation with which gates compare a new one.

Found once, when an evaluation is submitted, and stored with its request.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.metrics import Score
from prescore.models.runs import DatasetPinned
from prescore.plain_text import quoted
from service.contract import wording
from service.contract.metrics import catalogue
from service.contract.results import StoredBaseline, StoredEvaluation
from service.engine.blobs import Blobs
from service.engine.service_parts import ServiceParts
from service.engine.tables import boards, labels, runs, score_rows
from service.runs import evaluations, run_lists, run_store, scored_captions, verdicts
from service.runs.submission.evaluation_plan import find_image_task
from service.runs.verdicts import NOT_FINITE
from service.stored.datasets import PinnedSplit

_BEST = "best"
_LOOKED_AT = 20  # at most so many evaluations are searched for one with the metric
_ON: sa.Select[Any] = sa.select(  # a run and the split that it is on
    runs.c.id,
    runs.c.dataset_name,
    runs.c.dataset_version,
    runs.c.dataset_digest,
    runs.c.split,
)


@dataclass(frozen=True)
class BaselineRequest:
    """The requested baseline: `best`, an evaluation's id, or label=value. Of the new evaluation are
    `images`, the places of those that have captions (None: all), and `labels`.
    """

    text: str
    dataset: PinnedSplit
    images: frozenset[int] | None
    labels: Mapping[str, str] = field(default_factory=dict)


def find_baselines(
    parts: ServiceParts, sought: BaselineRequest, metrics: Iterable[str]
) -> dict[str, StoredBaseline]:
    """The baseline of each metric."""
    names = list(metrics)
    with parts.records.reading() as connection:
        past = _BaselineSearch(connection, parts, sought, names)
        return {name: past.kept(name) for name in names}


@dataclass(frozen=True)
class _BaselineCandidate:
    """A possible baseline, as it ended or as it is now."""

    id: str
    dataset: DatasetPinned
    captions: str  # from which the references are read
    rows: Sequence[Mapping[str, Any]]
    scores: Mapping[str, Score]
    is_partial: bool
    failed: bool  # its own gates


@dataclass(frozen=True)
class _BaselineSearch:
    connection: Connection
    parts: ServiceParts
    sought: BaselineRequest
    metrics: Sequence[str]
    known: dict[str, _BaselineCandidate] = field(default_factory=dict)

    def kept(self, metric: str) -> StoredBaseline:
        reasons = []
        for identity in self._candidates(metric):
            past = self._past(identity)
            reason = self._unfit(past, metric)
            if reason is None:
                return _entry(past, metric, self._label)
            reasons.append(f"{identity} {reason}")
        if reasons:
            return StoredBaseline(none_because=reasons[0])
        if (going := self._unfinished()) is not None:
            return StoredBaseline(none_because=f"no baseline yet: {going}")
        reason = f"no baseline yet: {self._none_found()}"
        if (elsewhere := self._elsewhere(metric)) is not None:
            return StoredBaseline(none_because=f"{reason}; {_told(elsewhere)}")
        if question := self._near():
            first = f"if not, the first run is one that has the label {quoted(self.sought.text)}"
            return StoredBaseline(none_because=f"{reason}{question} {first}")
        return StoredBaseline(none_because=reason, is_first=True)

    def _unfinished(self) -> str | None:
        """Advice on the latest run with the label that has not ended; None if there is none."""
        if self._label is None:
            return None
        here = run_store.match_split(self.sought.dataset)
        query = self._labelled(sa.select(runs.c.id, runs.c.status), here)
        found = self.connection.execute(query.where(runs.c.finished_at.is_(None)).limit(1)).first()
        if found is None:
            return None
        return (
            f"{found.id} with the label {quoted(self.sought.text)} is {found.status}: submit this "
            "again when it has ended"
        )

    def _none_found(self) -> str:
        wanted, dataset = self.sought.text, self.sought.dataset
        if wanted == _BEST:
            return f"no evaluation of {dataset} that passed its gates has this score"
        query = self._labelled(sa.select(runs.c.id), run_store.match_split(dataset))
        succeeded = query.where(runs.c.status == "succeeded").limit(1)
        is_failed = self.connection.execute(succeeded).first() is not None
        passed = " and passed its gates" if is_failed else ""
        return f"no evaluation of {dataset} with the label {quoted(wanted)} has succeeded{passed}"

    def _near(self) -> str:
        """A question with the labels of succeeded evaluations that were probably meant; none where
        the new evaluation has the label itself: it is the first, and the next one finds it.
        """
        if self._label is None or self._is_own:
            return ""
        run, here = runs.c, run_store.match_split(self.sought.dataset)
        succeeded = run.kind == evaluations.KIND.name, run.status == "succeeded"
        query = sa.select(run.id.label("run_id"), run.created_at).where(*succeeded, here)
        known = run_lists.find_latest_labels(self.connection, query)
        return wording.suggest_labels(run_lists.quote_label(self._label), known)

    @property
    def _label(self) -> str | None:
        return self.sought.text if "=" in self.sought.text else None

    @property
    def _is_own(self) -> bool:
        name, _, value = self.sought.text.partition("=")
        return self.sought.labels.get(name) == value

    def _elsewhere(self, metric: str) -> Row[Any] | None:
        """The latest evaluation, with its version, that would be found if other versions had the
        captions of this one.
        """
        if self._label is None:
            others = sa.select(boards.c.id).where(self._on_others(boards))
            latest = self._latest(others, metric)
            if latest is None:
                return None
            query = _ON.where(runs.c.id == latest[0])
        else:
            query = self._with_label(_ON, self._on_others(runs))
        return self.connection.execute(query.limit(1)).first()

    def _on_others(self, table: sa.Table) -> sa.ColumnElement[bool]:
        """The condition for runs, or boards, on the split of versions with other captions."""
        ours = self.sought.dataset
        return sa.and_(
            table.c.dataset_name == ours.name,
            table.c.split == ours.split,
            table.c.dataset_captions != ours.captions,
        )

    def _with_label(self, query: sa.Select[Any], on: sa.ColumnElement[bool]) -> sa.Select[Any]:
        """The evaluations with the label that may be baselines, the latest first."""
        return self._labelled(query, on).where(runs.c.may_be_baseline)

    def _labelled(self, query: sa.Select[Any], on: sa.ColumnElement[bool]) -> sa.Select[Any]:
        """The evaluations with the label, the latest first."""
        name, _, value = self.sought.text.partition("=")
        return (
            query.join(labels, labels.c.run_id == runs.c.id)
            .where(
                labels.c.name == name,
                labels.c.value == value,
                runs.c.kind == evaluations.KIND.name,
                on,
            )
            .order_by(labels.c.created_at.desc())
        )

    def _candidates(self, metric: str) -> Sequence[str]:
        """Ids of possible baselines, in the order in which to try them."""
        wanted = self.sought.text
        if self._label is None:
            return self._best(metric) if wanted == _BEST else [wanted]
        query = self._with_label(sa.select(runs.c.id), run_store.match_split(self.sought.dataset))
        return self.connection.execute(query.limit(_LOOKED_AT)).scalars().all()

    def _best(self, metric: str) -> Sequence[str]:
        """Evaluations by score, the best first, with the latest evaluation's signature."""
        here = sa.select(boards.c.id).where(run_store.match_split(self.sought.dataset, boards))
        latest = self._latest(here, metric)
        if latest is None:
            return []
        _, board = latest
        found = self._of_board(board, score_rows.c.first, score_rows.c.place, _LOOKED_AT)
        ordered = sorted(found, key=lambda row: (row.place, row.created_at))
        return list(dict.fromkeys(row.run_id for row in ordered))[:_LOOKED_AT]

    def _latest(self, places: sa.Select[Any], metric: str) -> tuple[str, int] | None:
        """The latest evaluation with a metric on any of these boards, and its board."""
        on = places.where(boards.c.metric == catalogue.find_metric(metric).name)
        latest = [
            (row.created_at, board, row.run_id)
            for board in self.connection.execute(on).scalars().all()
            for row in self._of_board(board, score_rows.c.listed, score_rows.c.created_at.desc(), 1)
        ]
        if not latest:
            return None
        _, board, identity = max(latest)
        return identity, board

    def _of_board(
        self, board: int, flag: sa.Column[bool], order: sa.ColumnElement[Any], limit: int
    ) -> Iterator[Row[Any]]:
        """Scores of possible baselines in an order, up to a limit of those with the flag and of
        those without: an index has the order of either.
        """
        for flagged in (True, False):
            query = (
                sa.select(score_rows)
                .join(runs, runs.c.id == score_rows.c.run_id)
                .where(
                    score_rows.c.board_id == board,
                    flag.is_(flagged),
                    score_rows.c.value.is_not(None),
                    runs.c.may_be_baseline,
                )
                .order_by(order)
            )
            yield from self.connection.execute(query.limit(limit))

    def _past(self, identity: str) -> _BaselineCandidate:
        if identity not in self.known:
            looked = run_store.load_run(self.connection, identity, evaluations.KIND)
            found = run_store.load_all_scores(self.connection, looked)
            named = {catalogue.find_metric(name).name for name in self.metrics}
            request = found.request(StoredEvaluation)
            self.known[identity] = _BaselineCandidate(
                identity,
                found.common["dataset"],
                found.row.dataset_captions,
                found.tasks,
                verdicts.read_scores(found.tasks, named),
                is_partial=found.row.checkpoint is None and request.subset,
                failed=verdicts.decide_gates(found.tasks, request)[1] == "failed",
            )
        return self.known[identity]

    def _unfit(self, past: _BaselineCandidate, metric: str) -> str | None:
        """Reason why an evaluation cannot be the baseline of a metric; None if it can."""
        ours, theirs = self.sought.dataset, past.dataset
        if (past.captions, theirs.split) != (ours.captions, ours.split):
            return f"is of {theirs}, and not of {ours}"
        score = past.scores.get(catalogue.find_metric(metric).name)
        if score is None:
            return f"has no {metric}"
        if score.value is None:
            return f"is no baseline for {metric}: {NOT_FINITE}"
        if self.sought.images != self._images(past):
            return "has captions of other images of the split"
        return None

    def _images(self, past: _BaselineCandidate) -> frozenset[int] | None:
        digest = evaluations.find_captions(self.parts, past.id) if past.is_partial else None
        return find_captioned_images(self.parts.blobs, digest, self.sought.dataset)


def find_captioned_images(
    blobs: Blobs, captions: str | None, dataset: PinnedSplit
) -> frozenset[int] | None:
    """The places of the images that have captions; None: all images of the split."""
    if captions is None:
        return None
    places = frozenset(
        pair.place for pair in scored_captions.read_pairs(blobs.path(captions, check=False))
    )
    return None if len(places) == dataset.images else places


def _told(elsewhere: Row[Any]) -> str:
    return (
        f"{run_store.describe_split(elsewhere)}, which has other captions, has {elsewhere.id}: "
        "name that version to compare with it, or score a baseline on this one"
    )


def _entry(found: _BaselineCandidate, metric: str, label: str | None) -> StoredBaseline:
    score = found.scores[catalogue.find_metric(metric).name]
    results = {row["name"]: row["result"] for row in found.rows}
    return StoredBaseline(
        evaluation=found.id,
        scored_on=str(found.dataset),
        label=label,
        value=score.value,
        interval=score.interval,
        signature=score.signature,
        result=results.get(find_image_task(metric)),
        failed=found.failed,
    )
