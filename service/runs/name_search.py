"""Search of a team's splits, trainings, evaluations, metrics and images by a part of a name, in
upper or lower case.

The database compares with LIKE, of which SQLite knows the case of ASCII letters alone: any other
character of the text stands there for any one, and what is found is compared again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, zip_longest
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.search import NameMatch
from service.contract.metrics import catalogue
from service.contract.wording import count_noun
from service.engine.service_parts import ServiceParts
from service.engine.tables import datasets, labels, runs
from service.runs import evaluations
from service.stored import splits
from service.stored.datasets import find_made_images

_RUN = "run"  # the label that names a training
_SPARE = 4  # rows that are read for each that is shown: an evaluation may have several labels
_SEARCHED = 10  # datasets, the latest, whose images are searched
_SHOWN_LABELS = 3
_NOTE = 100  # characters
_EVALUATIONS = sa.select(runs.c.id).where(runs.c.kind == evaluations.KIND.name)


@dataclass(frozen=True)
class SearchText:
    """A text to be found in names; `rank`: 0 in an equal one, 1 at the beginning, 2 inside."""

    text: str
    is_sqlite: bool

    @cached_property
    def _folded(self) -> str:
        return self.text.casefold()

    def rank(self, name: str) -> int | None:
        """Rank of a name; None where it does not have the text."""
        place = name.casefold().find(self._folded)
        if place < 0:
            return None
        return 0 if name.casefold() == self._folded else 1 + (place > 0)

    def best_rank(self, names: Iterable[str]) -> int | None:
        return min((rank for name in names if (rank := self.rank(name)) is not None), default=None)

    def matches(self, column: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        return self._like(column, f"%{self._pattern}%")

    def order(self, column: sa.ColumnElement[str]) -> sa.ColumnElement[int]:
        """The rank as the database knows it."""
        equal, begins = self._pattern, f"{self._pattern}%"
        return sa.case((self._like(column, equal), 0), (self._like(column, begins), 1), else_=2)

    @cached_property
    def _pattern(self) -> str:
        return splits.escape_like(self.text)

    def _like(self, column: sa.ColumnElement[str], pattern: str) -> sa.ColumnElement[bool]:
        """LIKE in upper or lower case, as it is in SQLite; its other form there takes twice the
        time.
        """
        like = column.like if self.is_sqlite else column.ilike
        return like(pattern, escape=splits.ESCAPE)


Ranked = tuple[int, NameMatch]


def search_names(parts: ServiceParts, text: str, limit: int) -> list[NameMatch]:
    """The best matches, of each kind in turn until there are `limit`; the best ones first."""
    wanted = SearchText(text, parts.records.is_file)
    with parts.records.reading() as connection:
        versions = _read_versions(connection)
        kinds = [
            _find_splits(wanted, versions),
            _find_trainings(connection, wanted, limit),
            _find_evaluations(connection, wanted, limit),
            _find_metrics(wanted),
            _find_images(parts, connection, wanted, versions, limit),
        ]
        ordered = [sorted(found, key=lambda each: each[0]) for found in kinds]
    in_turn = (each for row in zip_longest(*ordered) for each in row if each is not None)
    return [match for _, match in sorted(islice(in_turn, limit), key=lambda each: each[0])]


def _match(kind: str, name: str, detail: str, **more: Any) -> NameMatch:
    return NameMatch.model_validate({"kind": kind, "name": name, "detail": detail, **more})


def _read_versions(connection: Connection) -> list[Row[Any]]:
    """The latest version of each dataset, the latest ones first."""
    of = datasets.c.name, datasets.c.version, datasets.c.captions, datasets.c.splits
    query: sa.Select[Any] = sa.select(*of, datasets.c.created_at).order_by(datasets.c.version)
    latest: dict[str, Row[Any]] = {}
    for row in connection.execute(query):
        latest[row.name] = row
    return sorted(latest.values(), key=lambda row: row.created_at, reverse=True)


def _find_splits(wanted: SearchText, versions: Sequence[Row[Any]]) -> Iterator[Ranked]:
    for row in versions:
        for split, counts in json.loads(row.splits).items():
            name = f"{row.name}/{split}"
            rank = wanted.best_rank((name, row.name, split))
            if rank is not None:
                yield (
                    rank,
                    _match("split", name, count_noun(counts["images"], "image"), dataset=name),
                )


def _find_trainings(connection: Connection, wanted: SearchText, limit: int) -> Iterator[Ranked]:
    value, latest = labels.c.value, sa.func.max(labels.c.created_at)
    query = (
        sa.select(value, sa.func.count().label("many"))
        .where(labels.c.name == _RUN, labels.c.run_id.in_(_EVALUATIONS), wanted.matches(value))
        .group_by(value)
        .order_by(wanted.order(value), latest.desc())
        .limit(limit)
    )
    last = (
        sa.select(runs.c.dataset_name, runs.c.split)
        .join(labels, labels.c.run_id == runs.c.id)
        .where(labels.c.name == _RUN, value == sa.bindparam("run"))
        .where(runs.c.kind == evaluations.KIND.name)
        .order_by(labels.c.created_at.desc())
        .limit(1)
    )
    for row in connection.execute(query).all():
        rank = wanted.rank(row.value)
        found = connection.execute(last, {"run": row.value}).first()
        if rank is not None and found is not None:
            on = f"{found.dataset_name}/{found.split}"
            many = count_noun(row.many, "evaluation")
            yield rank, _match("training", row.value, many, dataset=on, run=row.value)


def _find_evaluations(connection: Connection, wanted: SearchText, limit: int) -> Iterator[Ranked]:
    """Those with a label, a note or an id that has the text, the best match of each."""
    most = _SPARE * limit
    value, created_at = labels.c.value, labels.c.created_at
    of_label = sa.select(
        labels.c.run_id.label("id"), labels.c.name, value.label("text"), created_at
    )
    of_label = of_label.where(wanted.matches(value), labels.c.run_id.in_(_EVALUATIONS))
    of_label = of_label.order_by(wanted.order(value), created_at.desc())
    of_note = _select_runs(wanted, runs.c.note, runs.c.note.is_not(None))
    of_id = _select_runs(wanted, runs.c.id)
    best: dict[str, tuple[int, float, str]] = {}  # by id: rank, age, text
    for query in (of_id, of_label, of_note):
        for row in connection.execute(query.limit(most)):
            rank = wanted.rank(row.text)
            if rank is not None and (row.id not in best or rank < best[row.id][0]):
                best[row.id] = rank, -row.created_at, _describe_text(row)
    chosen = dict(sorted(best.items(), key=lambda item: item[1])[:limit])
    rows = connection.execute(
        sa.select(runs.c.id, runs.c.dataset_name, runs.c.split).where(runs.c.id.in_([*chosen]))
    ).all()
    marked = _read_labels(connection, [*chosen])
    on = {row.id: f"{row.dataset_name}/{row.split}" for row in rows}
    for identity, (rank, _, text) in chosen.items():
        own = marked.get(identity, {})
        some = (f"{name}={value}" for name, value in islice(own.items(), _SHOWN_LABELS))
        more: dict[str, Any] = {"run": own[_RUN]} if _RUN in own else {}
        more |= {"dataset": on[identity], "evaluation": identity, "labels": own}
        yield rank, _match("evaluation", identity, text or ", ".join(some), **more)


def _select_runs(
    wanted: SearchText, column: sa.Column[Any], *conditions: sa.ColumnElement[bool]
) -> sa.Select[Any]:
    """Evaluations whose column has the text."""
    name = sa.literal(column.name).label("name")
    of = runs.c.id, name, column.label("text"), runs.c.created_at
    these = runs.c.kind == evaluations.KIND.name, *conditions, wanted.matches(column)
    return sa.select(*of).where(*these).order_by(wanted.order(column), runs.c.created_at.desc())


def _describe_text(row: Row[Any]) -> str:
    """The label or the note that has the text; empty for an id, which is shown anyway."""
    if row.name == runs.c.id.name:
        return ""
    return row.text[:_NOTE] if row.name == runs.c.note.name else f"{row.name}={row.text}"


def _read_labels(
    connection: Connection, identities: Sequence[str]
) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    query = sa.select(labels).where(labels.c.run_id.in_(identities)).order_by(labels.c.name)
    for row in connection.execute(query):
        found.setdefault(row.run_id, {})[row.name] = row.value
    return found


def _find_metrics(wanted: SearchText) -> Iterator[Ranked]:
    for spec in catalogue.METRICS.values():
        shown = catalogue.find_shown_name(spec.name)
        rank = wanted.best_rank({spec.name, shown})
        if rank is not None:
            first, _, _ = spec.definition.partition(". ")
            yield rank, _match("metric", shown, f"{first.removesuffix('.')}.", metric=shown)


def _find_images(
    parts: ServiceParts,
    connection: Connection,
    wanted: SearchText,
    versions: Sequence[Row[Any]],
    limit: int,
) -> Iterator[Ranked]:
    """Images of the latest datasets. Those of a dataset that this machine has not used yet are
    not searched.
    """
    files = ((row, find_made_images(parts.blobs, row.captions)) for row in versions[:_SEARCHED])
    found = chain.from_iterable(
        ((row, *each) for each in splits.search_images(path, wanted.text, limit))
        for row, path in files
        if path is not None
    )
    ranked = [
        (rank, row.name, image, split)
        for row, name, image, split in found
        if (rank := wanted.rank(name)) is not None
    ]
    latest: dict[tuple[str, str], dict[str, str]] = {}
    for rank, dataset, image, split in sorted(ranked, key=lambda each: each[0])[:limit]:
        if (dataset, split) not in latest:
            latest[dataset, split] = _find_latest(connection, dataset, split)
        on = f"{dataset}/{split}"
        yield rank, _match("image", image, on, image=image, dataset=on, **latest[dataset, split])


def _find_latest(connection: Connection, dataset: str, split: str) -> dict[str, str]:
    """The latest evaluation on a split that succeeded, as a field; none where there is none."""
    query = (
        _EVALUATIONS.where(
            runs.c.dataset_name == dataset, runs.c.split == split, runs.c.status == "succeeded"
        )
        .order_by(runs.c.created_at.desc())
        .limit(1)
    )
    identity = connection.execute(query).scalar()
    return {} if identity is None else {"evaluation": identity}
