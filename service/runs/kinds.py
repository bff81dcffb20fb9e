"""The kinds of runs, and the submission of a request of any kind, once for each Idempotency-Key.

A new kind is a row here, and a module beside this one.
"""

import hashlib
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy.engine import Connection

from service.contract import limits
from service.contract.api.analyses import ComparisonRequest, ProbesRequest, StudyRequest
from service.contract.api.evaluations import EvaluationRequest
from service.contract.api.training import TrainingRequest
from service.contract.askers import LOCAL
from service.contract.errors import (
    Conflict,
    InvalidRequest,
    NotFound,
    ServiceUnavailable,
    UnknownMetric,
)
from service.contract.metrics import catalogue
from service.contract.plan.tasks import Blob
from service.engine.blobs import Blobs
from service.engine.records import Records, in_batches
from service.engine.service_parts import ServiceParts
from service.engine.tables import checkpoints, datasets, idempotency, runs
from service.runs import (
    annotations,
    comparisons,
    correlation_studies,
    evaluations,
    probes,
    run_store,
    training,
)
from service.runs.run_store import AnyRunKind, NewRun
from service.runs.submission import evaluation_submission
from service.stored import garbage

_TIMES = 5  # that a request is begun, if what it names is deleted meanwhile
_OF_METRICS = ("pregen", "postgen", "metrics", "trust")  # fields of requests


@dataclass(frozen=True)
class KindEntry:
    """A kind of run; `begin` checks and plans a request, which has labels if `labelled`."""

    kind: AnyRunKind
    request: type[BaseModel]
    begin: Callable[[ServiceParts, Any], NewRun]
    labelled: bool = False


KINDS: dict[str, KindEntry] = {
    "evaluation": KindEntry(
        evaluations.KIND, EvaluationRequest, evaluation_submission.begin_evaluation, labelled=True
    ),
    "comparison": KindEntry(comparisons.KIND, ComparisonRequest, comparisons.begin_comparison),
    "probes": KindEntry(probes.KIND, ProbesRequest, probes.begin_probes),
    "training": KindEntry(training.KIND, TrainingRequest, training.begin_training),
    "study": KindEntry(correlation_studies.KIND, StudyRequest, correlation_studies.begin_study),
}


class SubmittedRun(NamedTuple):
    """The run of a request; `replayed`: an earlier request with the same key began it."""

    identity: str
    replayed: bool


def submit_run(
    parts: ServiceParts,
    offered: KindEntry,
    request: BaseModel,
    key: str | None = None,
    caller: str = LOCAL,
) -> SubmittedRun:
    """Submit a request; returns its run, or the first run with the same key.

    `caller`: in whose turn its tasks are.
    """
    if offered.labelled:
        request = _labelled(parts, request)
    digest = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
    if key is not None:
        found = _replay(parts.records, parts.asker.claimant, key, digest)
        if found is not None:
            return SubmittedRun(found, replayed=True)
    for _ in range(_TIMES):
        run = _begun(parts, offered, request)
        with suppress(InputsGone):  # deleted just now: what begins anew finds it missing
            claim = None if key is None else (parts.asker.claimant, key, digest)
            return _insert(parts, run, claim, caller)
    raise ServiceUnavailable("what the request names is being deleted again and again; try again")


def _labelled(parts: ServiceParts, request: BaseModel) -> BaseModel:
    """The request with the labels that the asker's key gives. Forbidden where one is not the
    asker's to give.
    """
    given = getattr(request, "labels", {})
    labels = annotations.add_key_labels(parts, given)
    annotations.check_given_labels(parts, labels)
    if len(labels) > limits.LABELS:
        raise InvalidRequest(
            f"expected at most {limits.LABELS} labels with those of the key, found {len(labels)}",
            [("/labels", "expected fewer")],
        )
    return request if labels == given else request.model_copy(update={"labels": labels})


def _insert(
    parts: ServiceParts, run: NewRun, claim: tuple[str, str, str] | None, caller: str
) -> SubmittedRun:
    """Insert a run, unless another one has its key; then returns that one."""
    with run_store.begin_insertion(parts) as connection:
        if claim is not None:
            claimed = _claim(connection, parts.records, *claim, run.id)
            if claimed is not None:
                return SubmittedRun(claimed, replayed=True)
        check_inputs_exist(connection, parts.blobs, run)
        run_store.insert_run(connection, parts.records, run, caller)
    return SubmittedRun(run.id, replayed=False)


def _begun(parts: ServiceParts, offered: KindEntry, request: BaseModel) -> NewRun:
    """The run that a request asks for; what is wrong is told with its place."""
    try:
        return offered.begin(parts, request)
    except UnknownMetric as error:
        if error.pointer is None:
            error.pointer = _place_of(error.name, request)
            _tell_all(error, request)
        raise
    except NotFound as error:
        if error.pointer is None and error.name:
            error.pointer = _place_where(error.name, request)
        raise


def _place_of(metric: str, request: BaseModel) -> str | None:
    """The pointer of a metric in the lists of a request."""
    for field in type(request).model_fields:
        names = getattr(request, field)
        if isinstance(names, list) and metric in names:
            return f"/{field}/{names.index(metric)}"
    return None


def _place_where(name: str, request: BaseModel) -> str | None:
    """The pointer of the field that names a run, an upload or a dataset."""
    for field in type(request).model_fields:
        found = getattr(request, field)
        given = {f"/{field}": found} if isinstance(found, str) else {}
        if isinstance(found, list):
            given = {f"/{field}/{at}": one for at, one in enumerate(found) if isinstance(one, str)}
        for pointer, value in given.items():
            if name in (value, re.split("[@/]", value, maxsplit=1)[0]):
                return pointer
    return None


def _tell_all(error: UnknownMetric, request: BaseModel) -> None:
    """Tell all unknown metrics of a request where it has several."""
    given = [
        (f"/{field}/{place}", name)
        for field in _OF_METRICS
        if isinstance(names := getattr(request, field, None), list)
        for place, name in enumerate(names)
    ]
    wrong = [
        (pointer, said) for pointer, name in given if (said := catalogue.explain_unknown_name(name))
    ]
    if len(wrong) > 1:
        error.detail = f"{len(wrong)} of {len(given)} metrics are wrong"
        error.problems = tuple(wrong[: limits.PROBLEMS])


def _replay(records: Records, caller: str, key: str, digest: str) -> str | None:
    with records.reading() as connection:
        return _known(connection, caller, key, digest)


def _known(connection: Connection, caller: str, key: str, digest: str) -> str | None:
    row = connection.execute(
        sa.select(idempotency).where(idempotency.c.caller == caller, idempotency.c.key == key)
    ).first()
    if row is None:
        return None
    if row.request != digest:
        raise InvalidRequest(
            "this Idempotency-Key came with another request before; use a new key for a new request"
        )
    return str(row.run_id)


def _claim(
    connection: Connection, records: Records, caller: str, key: str, digest: str, identity: str
) -> str | None:
    """Reserve the key for this run; returns the id of the run that has it already, if any."""
    taken = records.add_new(
        connection,
        idempotency,
        caller=caller,
        key=key,
        request=digest,
        run_id=identity,
        created_at=time.time(),
    )
    if taken:
        return None
    known = _known(connection, caller, key, digest)
    if known is None:
        raise Conflict("a request with this Idempotency-Key is being answered; try again")
    return known


class InputsGone(Exception):
    """Inputs of a request that were deleted after they were found: look again."""


def check_inputs_exist(connection: Connection, blobs: Blobs, run: NewRun) -> None:
    """Raise Gone unless all that a run names is there. From its insertion on, its tasks keep it."""
    pinned = run.dataset
    version = datasets.c.name == pinned.name, datasets.c.version == pinned.version
    there = connection.execute(sa.select(datasets.c.digest).where(*version)).scalar()
    is_there = there == pinned.digest and _has(connection, checkpoints.c.digest, run.checkpoint)
    if not is_there or _missing(connection, run.others):
        raise InputsGone
    objects = {str(at) for task in run.tasks for at in task.inputs.values() if isinstance(at, Blob)}
    unnamed = objects - garbage.find_objects_of_rows(connection, objects)
    if not all(map(blobs.has, sorted(unnamed))):
        raise InputsGone


def _has(connection: Connection, column: sa.Column[str], digest: str | None) -> bool:
    if digest is None:
        return True
    return connection.execute(sa.select(column).where(column == digest)).first() is not None


def _missing(connection: Connection, identities: Iterable[str]) -> set[str]:
    wanted = set(identities)
    query = sa.select(runs.c.id)
    found = (
        identity
        for batch in in_batches(wanted)
        for identity in connection.execute(query.where(runs.c.id.in_(batch))).scalars()
    )
    return wanted - set(found)
