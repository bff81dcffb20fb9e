"""Labels and notes of runs: changes after submission, the list of labels in use, and who may set a
label (a protected one needs the scope `publish`; those of a CI job follow from its key).
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.evaluations import LABELLED, MOST_LABELS, Label, LabelList, LabelValue
from prescore.plain_text import quoted
from service.access import audit
from service.contract import limits
from service.contract.api.changes import EvaluationChange, RunChange
from service.contract.api.field_types import moment
from service.contract.askers import Scope
from service.contract.errors import Forbidden, InvalidRequest, PreconditionFailed
from service.contract.formats import strict_json
from service.engine import history
from service.engine.service_parts import ServiceParts
from service.engine.tables import labels, runs
from service.runs import evaluations, run_lists, run_store, training_falls
from service.runs.run_lists import RunQuery
from service.runs.run_store import AnyRunKind

ExpectsVersion = Callable[[int], bool]  # whether a version of the run is one that the caller knows


def change_run(
    parts: ServiceParts, kind: AnyRunKind, identity: str, wanted: RunChange, expects: ExpectsVersion
) -> None:
    """Change a run, which gets a new version unless all is as it was."""
    with parts.records.transaction() as connection:
        row = find_expected_row(connection, kind, identity, expects)
        done: dict[str, Any] = {}
        if isinstance(wanted, EvaluationChange):
            check_changed_labels(parts, wanted.labels)
            check_given_labels(parts, wanted.labels)
            if wanted.labels:
                check_run_labels(parts, connection, identity, *wanted.labels)
            group = training_falls.find_group(connection, identity)
            done |= _change_labels(connection, row, wanted.labels)
            if done:
                training_falls.settle_groups(connection, identity, group)
        if "note" in wanted.model_fields_set and wanted.note != row.note:
            done["note"] = wanted.note
            own = runs.update().where(runs.c.id == identity)
            connection.execute(own.values(note=wanted.note))
        if done:
            history.add_version(connection, identity)
            audit.note_change(connection, parts.asker, "run.changed", identity, **done)


def find_expected_row(
    connection: Connection, kind: AnyRunKind, identity: str, expects: ExpectsVersion
) -> Row[Any]:
    """A run's row; PreconditionFailed if its version is not one that the caller knows."""
    row = run_store.find_run_row(connection, identity, kind)
    if not expects(row.version):
        raise PreconditionFailed(
            f"{identity} has changed since the ETag in If-Match: get it again, and look whether "
            "you still want this",
            pointer="/header/If-Match",
        )
    return row


def _change_labels(
    connection: Connection, row: Row[Any], wanted: Mapping[str, str | None]
) -> dict[str, Any]:
    """Set and remove labels of a run; returns how those that change were before, and are."""
    own = sa.select(labels.c.name, labels.c.value).where(labels.c.run_id == row.id)
    before: dict[str, str] = {each.name: each.value for each in connection.execute(own)}
    changed = {name: value for name, value in wanted.items() if before.get(name) != value}
    kept = [name for name in before if name not in changed]
    given = {name: value for name, value in changed.items() if value is not None}
    if len(kept) + len(given) > limits.LABELS:
        raise InvalidRequest(
            f"a run has at most {limits.LABELS} labels, with these it would have "
            f"{len(kept) + len(given)}",
            [("/labels", "expected fewer, or some that are removed")],
        )
    if not changed:
        return {}
    gone = labels.c.run_id == row.id, labels.c.name.in_(changed)
    connection.execute(labels.delete().where(*gone))
    if given:
        shared = {"run_id": row.id, "created_at": row.created_at}
        rows = [{"name": name, "value": value, **shared} for name, value in given.items()]
        connection.execute(labels.insert(), rows)
    return {"labels": changed, "before": {name: before.get(name) for name in changed}}


def check_given_labels(parts: ServiceParts, given: Mapping[str, str | None]) -> None:
    """Forbidden where one of these labels is protected, and the asker may not publish."""
    for name, value in given.items():
        if f"{name}={value}" in parts.protected and not parts.asker.scope.includes(Scope.PUBLISH):
            raise _forbidden(parts, f"{name}={value}", strict_json.join_pointer(("labels", name)))


def add_key_labels(parts: ServiceParts, given: Mapping[str, str]) -> Mapping[str, str]:
    """The labels of a new run: those of the request, and those that a CI job's key gives. Forbidden
    where they contradict each other.
    """
    for name, value in parts.asker.labels.items():
        if given.get(name, value) != value:
            raise _dictated(name, value)
    return {**given, **parts.asker.labels}


def check_changed_labels(parts: ServiceParts, names: Iterable[str]) -> None:
    """Forbidden where one of these labels follows from the asker's job: it is not to be changed by
    its key.
    """
    for name in names:
        if name in parts.asker.labels:
            raise _dictated(name, parts.asker.labels[name])


def check_run_labels(
    parts: ServiceParts, connection: Connection, identity: str, *names: str
) -> None:
    """Forbidden where the run has a protected label, of these names if there are some, and the
    asker may not publish.
    """
    if parts.asker.scope.includes(Scope.PUBLISH):
        return
    had = sa.select(labels.c.name, labels.c.value).where(labels.c.run_id == identity)
    for row in connection.execute(had):
        label = f"{row.name}={row.value}"
        if label in parts.protected and (not names or row.name in names):
            raise _forbidden(parts, label, None)


def _dictated(name: str, value: str) -> Forbidden:
    return Forbidden(
        f"the key is a CI job's, from which the label {quoted(name)} follows: expected "
        f"{quoted(value)}, as the job's own branch, commit and run are, or no such label",
        pointer=strict_json.join_pointer(("labels", name)),
    )


def _forbidden(parts: ServiceParts, label: str, pointer: str | None) -> Forbidden:
    return Forbidden(
        f"the label {quoted(label)} is protected: it needs a key with the scope {Scope.PUBLISH}, "
        f"found one with {parts.asker.scope}",
        pointer=pointer,
    )


def list_used_labels(parts: ServiceParts, dataset: str | None) -> LabelList:
    """Names and values of the latest evaluations, those of the latest one first. `dataset`:
    `name[@version][/split]`.
    """
    of = runs.c.kind == evaluations.KIND.name, *run_lists.filter_runs(RunQuery(dataset))
    newest = sa.select(runs.c.id).where(*of).order_by(runs.c.created_at.desc(), runs.c.id.desc())
    few = newest.limit(LABELLED).subquery()
    latest = sa.func.max(labels.c.created_at)
    counted = (
        sa.select(labels.c.name, labels.c.value, sa.func.count().label("many"), latest.label("at"))
        .join(few, few.c.id == labels.c.run_id)
        .group_by(labels.c.name, labels.c.value)
        .subquery()
    )
    named, order = counted.c.name, (counted.c.at.desc(), counted.c.value)
    placed = sa.select(
        *counted.c,
        sa.func.row_number().over(partition_by=named, order_by=order).label("place"),
        sa.func.max(counted.c.at).over(partition_by=named).label("named_at"),
    ).subquery()
    query = sa.select(*placed.c).where(placed.c.place <= MOST_LABELS + 1)
    query = query.order_by(placed.c.named_at.desc(), placed.c.name, placed.c.place)
    with parts.records.reading() as connection:
        rows = connection.execute(query).all()
    found = [(name, list(own)) for name, own in groupby(rows, key=lambda row: row.name)]
    return LabelList(
        items=[
            Label(
                name=name,
                values=[
                    LabelValue(value=row.value, evaluations=row.many, latest=moment(row.at))
                    for row in own[:MOST_LABELS]
                ],
                more_values=len(own) > MOST_LABELS,
            )
            for name, own in found[:MOST_LABELS]
        ],
        more_names=len(found) > MOST_LABELS,
    )
