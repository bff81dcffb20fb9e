"""Stored checkpoints, by the SHA-256 of their bytes.

One in Prescore's own form is ready when it is stored. Of a state dict a work makes one in our own
form; until then what is known of it is what its package says. What is evaluated as it came, from
transformers, as ONNX or by a plug-in, a work verifies first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from prescore.models.base import RunProblem
from prescore.models.checkpoints import Checkpoint
from service.contract.api.texts import moment
from service.contract.asking import LOCAL
from service.contract.errors import InvalidRequest, NotFound
from service.contract.plan import planning
from service.contract.plan.works import Work
from service.stored import cached, conversions, described, plugins
from service.stored.conversions import Conversion
from service.stored.described import Described
from service.works.blobs import Blobs
from service.works.parts import Parts
from service.works.records import Records
from service.works.tables import checkpoints

_OURS = "canonical"
_CONVERTED = "pytorch"  # formats of which a work makes a file in our own form
_USUAL = {"inputs": "features", "units": "words"}  # of Prescore's own form
_NOT_KNOWN_YET = {"config": None, "parameters": None, "plugin": None}


@dataclass(frozen=True)
class Used:
    """What the works of a run read: the digest of a file that they read, or the work that makes
    one, before which `description` may lack `config`. `verified`: what comes before a file that is
    evaluated as it came.
    """

    source: str | Work
    description: Mapping[str, Any]
    verified: Work | None = None


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
        work = _work(connection, found)
    if isinstance(work, Work):
        conversions.begin(parts, work, caller)


def use(records: Records, digest: str) -> Used:
    """InvalidRequest where its conversion has shown that it is no checkpoint."""
    found = _found(records, digest)
    if _is_ready(found.description):
        return Used(digest, found.description)
    with records.reading() as connection:
        work = _work(connection, found)
        conversion = _look(connection, work)
    if isinstance(work, Work) and not conversion.is_hopeless:
        return _used(found, work, conversion)
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
        digest: plugins.work_of(connection, digest, of)
        for digest, of in stored.items()
        if not _is_ready(of)
    }
    works = {digest: work for digest, work in others.items() if isinstance(work, Work)}
    converted = conversions.facts(connection, works)
    return {digest: {**of, **converted.get(digest, {})} for digest, of in stored.items()}


def file_of(records: Records, digest: str) -> str:
    """The digest of the file that is evaluated."""
    if _found(records, digest).description.get("format") != _CONVERTED:
        return digest
    with records.reading() as connection:
        result = conversions.look(connection, planning.conversion(digest)).result
    if result is None:
        raise NotFound(f"checkpoint {digest} is not converted")
    return result


def get(records: Records, digest: str) -> Checkpoint:
    found = _found(records, digest)
    with records.reading() as connection:
        work = None if _is_ready(found.description) else _work(connection, found)
        conversion = _look(connection, work)
        used = _used(found, work, conversion)
        model = planning.inputs_of_model(used.source, used.verified)
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


def _work(connection: Connection, found: Described) -> Work | RunProblem:
    return plugins.work_of(connection, found.digest, found.description)


def _look(connection: Connection, work: Work | RunProblem | None) -> Conversion:
    match work:
        case None:
            return Conversion("ready")
        case Work():
            return conversions.look(connection, work)
    return Conversion("invalid", work)


def _used(found: Described, work: Work | RunProblem | None, conversion: Conversion) -> Used:
    description = {**found.description, **(conversion.facts or {})}
    if not isinstance(work, Work):
        return Used(found.digest, description)
    if description["format"] == _CONVERTED:
        return Used(work, description)
    return Used(found.digest, description, verified=work)


def _is_ready(description: Mapping[str, Any]) -> bool:
    """Whether no work comes before it is evaluated."""
    return "format" not in description  # of Prescore's own form
