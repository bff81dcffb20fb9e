"""A request of any kind is taken in: planned, recorded, and told to the workers, at most once."""

import hashlib
import time

import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy.engine import Connection

from service.contract.errors import Conflict, InvalidRequest
from service.runs import base
from service.runs.kinds import Offered
from service.works.parts import Parts
from service.works.records import Records
from service.works.tables import idempotency


def submit(
    parts: Parts,
    offered: Offered,
    request: BaseModel,
    key: str | None = None,
    caller: str = "anyone",
) -> str:
    """The id of the run; the same Idempotency-Key answers with the first one's."""
    digest = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
    if key is not None:
        found = _replay(parts.records, caller, key, digest)
        if found is not None:
            return found
    run = offered.begin(parts, request)
    with base.starting(parts) as connection:
        if key is not None:
            claimed = _claim(connection, parts.records, caller, key, digest, run.id)
            if claimed is not None:
                return claimed
        base.insert(connection, parts.records, run)
    return run.id


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
    """Takes the key for this run, or says whose it is."""
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
        raise Conflict("a request with this Idempotency-Key is on its way; ask again")
    return known
