"""Adds planned works to the database: new ones, and ended ones that start again."""

import json
import time
from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.asking import LOCAL
from service.contract.plan import works
from service.contract.plan.prices import SHORT_SECONDS
from service.contract.plan.works import Work
from service.works import graph
from service.works.kept import loose
from service.works.records import Records, in_batches
from service.works.tables import needs, work_rows
from service.works.teams import owned
from service.works.tracing import contexts
from service.works.waiting import turns


def add_works(
    records: Records,
    connection: Connection,
    planned: Sequence[Work],
    deadline: float,
    caller: str = LOCAL,
) -> dict[str, bool]:
    """Add works, needed ones first, or start them again; returns key -> whether it was done.

    Shards of a finished work are not added, unless another work reads them.
    """
    keys = {work.key for work in planned}
    loose.hold(connection, keys)
    done = done_of(connection, keys)
    over = {part.key for work in planned if work.key in done for part in work.parts}
    over -= {
        need.key
        for work in planned
        if work.key not in done | over
        for need in work.inputs.values()
        if isinstance(need, Work)
    }
    cached = dict.fromkeys(over, True)
    wanted = [work for work in planned if work.key not in done | over]
    given = turns.given(connection, wanted, caller)
    for work in planned:
        if work.key not in cached:
            waiting = sum(not cached[need.key] for need in _distinct(work.needs))
            cached[work.key] = work.key in done
            if work.key not in done:
                _add(records, connection, work, waiting, deadline, given[work.key])
    return cached


def done_of(connection: Connection, keys: Collection[str]) -> set[str]:
    """Which of these works are done. The status is no condition of the query: its index would lead
    to all works that are done.
    """
    query = sa.select(work_rows.c.key, work_rows.c.status)
    return {
        row.key
        for batch in in_batches(keys)
        for row in connection.execute(query.where(work_rows.c.key.in_(batch)))
        if row.status == "done"
    }


def _add(
    records: Records,
    connection: Connection,
    work: Work,
    waiting: int,
    deadline: float,
    turn: float,
) -> None:
    key, now = work.key, time.time()
    status = "waiting" if waiting else "ready"
    fresh = {
        "status": status,
        "parts": json.dumps([part.key for part in work.parts]),  # may differ from last time
        "waiting_for": waiting,
        "result": None,
        "summary": None,
        "summary_id": None,
        "deadline": deadline,
        "turn": turn,
        "short": work.price <= SHORT_SECONDS,
        "traceparent": contexts.current(),
        **graph.FRESH,
    }
    if (payer := owned.team_of(connection)) is not None:
        fresh["payer"] = payer
    added = records.add_new(
        connection,
        work_rows,
        key=key,
        kind=work.kind,
        queue=works.KINDS[work.kind].queue,
        inputs=json.dumps({k: works.reference(v) for k, v in work.inputs.items()}),
        parameters=json.dumps(dict(work.parameters)),
        created_at=now,
        **fresh,
    )
    if not added:
        row = connection.execute(
            sa.select(work_rows.c.status, work_rows.c.deadline, work_rows.c.turn).where(
                work_rows.c.key == key
            )
        ).one()
        if row.status not in works.RESTARTED:
            shared = {"deadline": max(deadline, row.deadline), "turn": min(turn, row.turn)}
            connection.execute(work_rows.update().where(work_rows.c.key == key).values(**shared))
            return
        connection.execute(work_rows.update().where(work_rows.c.key == key).values(**fresh))
        connection.execute(needs.delete().where(needs.c.work_key == key))
    for need in _distinct(work.needs):
        connection.execute(needs.insert().values(work_key=key, needs_key=need.key))
    if status == "ready":
        graph.wake(connection, key, works.KINDS[work.kind].queue)


def _distinct(found: Iterable[Work]) -> list[Work]:
    return list({work.key: work for work in found}.values())
