"""Stored checkpoints, by the SHA-256 of their bytes.

One in Prescore's own form is ready when it is stored. Of a state dict a task makes one in our own
form; until then what is known of it is what its package says. What is evaluated as it came, from
transformers, as ONNX or by a plug-in, a task verifies first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from prescore.models.base import RunProblem
from prescore.models.checkpoints import Checkpoint
from service.contract.api.field_types import moment
from service.contract.askers import LOCAL
from service.contract.errors import InvalidRequest, NotFound
from service.contract.plan import planning
from service.contract.plan.tasks import Task
from service.engine.blobs import Blobs
from service.engine.parts import Parts
from service.engine.records import Records
from service.engine.tables import checkpoints
from service.stored import cached, conversions, described, plugins
from service.stored.conversions import Conversion
from service.stored.described import Described

_OURS = "canonical"
_CONVERTED = "pytorch"  # formats of which a task makes a file in our own form
_USUAL = {"inputs": "features", "units": "words"}  # of Prescore's own form
_NOT_KNOWN_YET = {"config": None, "parameters": None, "plugin": None}


@dataclass(frozen=True)
class Used:
    """What the tasks of a run read: the digest of a file that they read, or the task that makes
    one, before which `description` may lack `config`. `verified`: what comes before a file that is
    evaluated as it came.
    """

    source: str | Task
    description: Mapping[str, Any]
    verified: Task | None = None


def add(
    records: Records,
    digest: str,
    size: int,
    description: dict[str, Any],
    blobs: Blobs | None = None,
) -> None:
    described.add(records, checkpoints, digest, size, description, blobs)


def exists(records: Records, blobs: Blobs, digest: str) -> bool:
    return described.exists(records, blobs, checkpoints, digest)


def prepare(parts: Parts, digest: str, caller: str = LOCAL) -> None:
    """Begin what has to be done before a checkpoint can be used."""
    found = _found(parts.records, digest)
    if _is_ready(found.description):
        return
    with parts.records.reading() as connection:
        task = _task(connection, found)
    if isinstance(task, Task):
        conversions.begin(parts, task, caller)


def use(records: Records, digest: str) -> Used:
    """InvalidRequest where its conversion has shown that it is no checkpoint."""
    found = _found(records, digest)
    if _is_ready(found.description):
        return Used(digest, found.description)
    with records.reading() as connection:
        task = _task(connection, found)
        conversion = _look(connection, task)
    if isinstance(task, Task) and not conversion.is_hopeless:
        return _used(found, task, conversion)
    assert conversion.problem is not None
    wrong = f"{digest} is no checkpoint: " if conversion.is_hopeless else ""
    raise InvalidRequest(
        f"{wrong}{conversion.problem.detail}",
        [("/checkpoint", "expected a checkpoint that is ready, or is being converted")],
    )


def descriptions(
    connection: Connection, stored: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Descriptions by digest, as they are stored, with what conversions have found."""
    others = {
        digest: plugins.task_of(connection, digest, of)
        for digest, of in stored.items()
        if not _is_ready(of)
    }
    tasks = {digest: task for digest, task in others.items() if isinstance(task, Task)}
    converted = conversions.facts(connection, tasks)
    return {digest: {**of, **converted.get(digest, {})} for digest, of in stored.items()}


def file_of(records: Records, digest: str) -> str:
    """The digest of the file that is evaluated."""
    if _found(records, digest).description.get("format") != _CONVERTED:
        return digest
    with records.reading() as connection:
        result = conversions.look(connection, planning.plan_conversion(digest)).result
    if result is None:
        raise NotFound(f"checkpoint {digest} is not converted")
    return result


def get(records: Records, digest: str) -> Checkpoint:
    found = _found(records, digest)
    with records.reading() as connection:
        task = None if _is_ready(found.description) else _task(connection, found)
        conversion = _look(connection, task)
        used = _used(found, task, conversion)
        model = planning.build_model_inputs(used.source, used.verified)
        found_before = cached.of(connection, digest, model, used.description.get("encoder"))
    return Checkpoint(
        digest=digest,
        bytes=found.bytes,
        state=conversion.state,
        problem=conversion.problem,
        **{"format": _OURS, **_USUAL, **_NOT_KNOWN_YET, **used.description},
        cached=found_before,
        created_at=moment(found.created_at),
    )


def _found(records: Records, digest: str) -> Described:
    found = described.find(records, checkpoints, digest)
    if found is None:
        raise NotFound(
            f"no checkpoint {digest}: upload it with PUT /v1/checkpoints/{digest}", name=digest
        )
    return found


def _task(connection: Connection, found: Described) -> Task | RunProblem:
    return plugins.task_of(connection, found.digest, found.description)


def _look(connection: Connection, task: Task | RunProblem | None) -> Conversion:
    match task:
        case None:
            return Conversion("ready")
        case Task():
            return conversions.look(connection, task)
    return Conversion("invalid", task)


def _used(found: Described, task: Task | RunProblem | None, conversion: Conversion) -> Used:
    description = {**found.description, **(conversion.facts or {})}
    if not isinstance(task, Task):
        return Used(found.digest, description)
    if description["format"] == _CONVERTED:
        return Used(task, description)
    return Used(found.digest, description, verified=task)


def _is_ready(description: Mapping[str, Any]) -> bool:
    """Whether no task comes before it is evaluated."""
    return "format" not in description  # of Prescore's own form
