"""Stored checkpoints, by the SHA-256 of their bytes.

One in Prescore's own form is ready when it is stored. Of a state dict a task makes one in our own
form; until then what is known of it is what its package says. What is evaluated as it came, from
transformers, as an adapter, as ONNX or by a plug-in, a task verifies first.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.base import RunProblem
from prescore.models.checkpoints import Cached, Checkpoint
from service.contract.api.field_types import moment
from service.contract.askers import LOCAL
from service.contract.assets import AssetFolders
from service.contract.errors import InvalidRequest, NotFound
from service.contract.formats.digests import DIGEST
from service.contract.plan import planning
from service.contract.plan.tasks import Blob, Task
from service.engine import intake
from service.engine.blobs import Blobs
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.engine.tables import checkpoints, datasets, runs
from service.stored import adapters, conversions, uploaded_files
from service.stored.conversions import Conversion
from service.stored.uploaded_files import UploadedFile

_OURS = "canonical"
_CONVERTED = "pytorch"  # formats of which a task makes a file in our own form
_USUAL = {"inputs": "features", "units": "words"}  # of Prescore's own form
_NOT_KNOWN_YET = {"config": None, "parameters": None, "plugin": None, "base": None}


@dataclass(frozen=True)
class UsableCheckpoint:
    """A checkpoint as the tasks of a run read it: the digest of a file, or the task that makes one,
    before which `description` may lack `config`. `verified`: the task that comes before a file that
    is evaluated as it came.
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
    uploaded_files.add_file(records, checkpoints, digest, size, description, blobs)


def exists(records: Records, blobs: Blobs, digest: str) -> bool:
    return uploaded_files.has_file(records, blobs, checkpoints, digest)


def prepare_checkpoint(
    parts: ServiceParts,
    digest: str,
    caller: str = LOCAL,
    check_quota: Callable[[], None] = lambda: None,
) -> None:
    """Begin what has to be done before a checkpoint can be used. LimitReached where there is no
    room for it; `check_quota` raises it, too.
    """

    def check_room() -> None:
        conversions.check_unfinished_conversions(parts.records, caller)
        check_quota()

    found = _found(parts, digest)
    if _is_ready(found.description):
        return
    with parts.records.reading() as connection:
        task = _task(connection, found)
    if isinstance(task, Task):
        conversions.begin_conversion(parts, task, caller, check_room)


def use_checkpoint(parts: ServiceParts, digest: str, base: str | None = None) -> UsableCheckpoint:
    """InvalidRequest where its conversion has shown that it is no checkpoint. `base`: the name of
    an adapter's base model, if it is asked for.
    """
    found = _found(parts, digest, base)
    if base is not None and found.description.get("format") != "adapter":
        raise InvalidRequest(
            "this checkpoint is no adapter: it has no base model", [("/base", "expected none")]
        )
    if _is_ready(found.description):
        return UsableCheckpoint(digest, found.description)
    with parts.records.reading() as connection:
        task = _task(connection, found)
        conversion = _look(connection, task)
    if isinstance(task, Task) and not conversion.is_hopeless:
        return _used(found, task, conversion)
    assert conversion.problem is not None
    wrong = f"{digest} is no checkpoint: " if conversion.is_hopeless else ""
    where = "/checkpoint" if base is None else "/base"
    raise InvalidRequest(
        f"{wrong}{conversion.problem.detail}",
        [(where, "expected a checkpoint that is ready, or is being converted")],
    )


def read_descriptions(
    connection: Connection, stored: Mapping[str, Mapping[str, Any]], places: AssetFolders
) -> dict[str, Mapping[str, Any]]:
    """Descriptions by digest, as they are stored, with what conversions have found."""
    stored = {digest: adapters.bind_base(of, places) for digest, of in stored.items()}
    others = {
        digest: conversions.task_of(connection, digest, of)
        for digest, of in stored.items()
        if not _is_ready(of)
    }
    tasks = {digest: task for digest, task in others.items() if isinstance(task, Task)}
    converted = conversions.read_facts(connection, tasks)
    return {digest: {**of, **converted.get(digest, {})} for digest, of in stored.items()}


def find_evaluated_file(parts: ServiceParts, digest: str) -> str:
    """The digest of the file that is evaluated."""
    if _found(parts, digest).description.get("format") != _CONVERTED:
        return digest
    with parts.records.reading() as connection:
        result = conversions.find_conversion(connection, planning.plan_conversion(digest)).result
    if result is None:
        raise NotFound(f"checkpoint {digest} is not converted")
    return result


def get(parts: ServiceParts, digest: str) -> Checkpoint:
    found = _found(parts, digest)
    with parts.records.reading() as connection:
        task = None if _is_ready(found.description) else _task(connection, found)
        conversion = _look(connection, task)
        used = _used(found, task, conversion)
        model = planning.build_model_inputs(used.source, used.verified)
        found_before = list_cached(connection, digest, model, used.description.get("encoder"))
    return Checkpoint(
        digest=digest,
        bytes=found.bytes,
        state=conversion.state,
        problem=conversion.problem,
        **{"format": _OURS, **_USUAL, **_NOT_KNOWN_YET, **used.description},
        cached=found_before,
        created_at=moment(found.created_at),
    )


def _found(parts: ServiceParts, digest: str, base: str | None = None) -> UploadedFile:
    found = uploaded_files.find_file(parts.records, checkpoints, digest)
    if found is None:
        raise NotFound(
            f"no checkpoint {digest}: upload it with PUT /v1/checkpoints/{digest}", name=digest
        )
    return replace(found, description=adapters.bind_base(found.description, parts.places, base))


def _task(connection: Connection, found: UploadedFile) -> Task | RunProblem:
    return conversions.task_of(connection, found.digest, found.description)


def _look(connection: Connection, task: Task | RunProblem | None) -> Conversion:
    match task:
        case None:
            return Conversion("ready")
        case Task():
            return conversions.find_conversion(connection, task)
    return Conversion("invalid", task)


def _used(
    found: UploadedFile, task: Task | RunProblem | None, conversion: Conversion
) -> UsableCheckpoint:
    description = {**found.description, **(conversion.facts or {})}
    if not isinstance(task, Task):
        return UsableCheckpoint(found.digest, description)
    if description["format"] == _CONVERTED:
        return UsableCheckpoint(task, description)
    return UsableCheckpoint(found.digest, description, verified=task)


def _is_ready(description: Mapping[str, Any]) -> bool:
    """True if no task comes before it is evaluated."""
    return "format" not in description  # of Prescore's own form


SplitKey = tuple[str, str]  # the digest of a bundle, and a name in it


def list_cached(
    connection: Connection,
    checkpoint: str,
    model: Mapping[str, Blob | Task],
    encoder: Mapping[str, Any] | None,
) -> list[Cached]:
    """List a checkpoint's cached results by split name. `model`: inputs by which tasks have it."""
    columns, features = {}, {}
    made = _features(connection, encoder)
    for split in _evaluated(connection, checkpoint):
        for inputs in ({}, {"features": made[split]} if split in made else {}):
            given = {**model, "dataset": Blob(split[0]), **inputs}
            columns[Task("columns", given, {"split": split[1]}).key] = split
    for split, task in made.items():
        features[task.key] = split
    done = intake.find_done(connection, {*columns, *features})
    scored = {split for key, split in columns.items() if key in done}
    encoded = {split for key, split in features.items() if key in done}
    return [
        Cached(dataset=name, columns=split in scored, features=split in encoded)
        for name, split in sorted(_names(connection, scored | encoded))
    ]


def _evaluated(connection: Connection, checkpoint: str) -> Iterator[SplitKey]:
    """The splits on which it was evaluated: columns are looked for there alone."""
    on = sa.select(runs.c.dataset_digest, runs.c.split).where(runs.c.checkpoint == checkpoint)
    for row in connection.execute(on.distinct()):
        yield row.dataset_digest, row.split


def _features(connection: Connection, encoder: Mapping[str, Any] | None) -> dict[SplitKey, Task]:
    """The tasks that compute features of all pictures of a split by this encoder."""
    if encoder is None or not DIGEST.fullmatch(encoder["digest"]):
        return {}
    sha256 = encoder["digest"].removeprefix("sha256:")
    found = {}
    for row in connection.execute(sa.select(datasets.c.digest, datasets.c.splits).distinct()):
        for name, counts in json.loads(row.splits).items():
            if (images := counts["images"]) == counts.get("pictures"):
                task = planning.plan_features(row.digest, name, images, sha256)
                found[row.digest, name] = task
    return found


def _names(connection: Connection, splits: set[SplitKey]) -> Iterator[tuple[str, SplitKey]]:
    """The names of these splits; the same bundle may have several."""
    columns = datasets.c
    for bundle, split in splits:
        of_bundle = sa.select(columns.name, columns.version).where(columns.digest == bundle)
        for row in connection.execute(of_bundle):
            yield f"{row.name}@v{row.version}/{split}", (bundle, split)
