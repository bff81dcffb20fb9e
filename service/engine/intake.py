"""Intake of planned tasks: new ones, and ended ones that start again."""

import json
import time
from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.askers import LOCAL
from service.contract.plan import tasks
from service.contract.plan.prices import SHORT_SECONDS
from service.contract.plan.tasks import Task
from service.engine import graph, loose_tasks, tenancy, turns
from service.engine.records import Records, in_batches
from service.engine.tables import needs, task_rows
from service.engine.tracing import contexts
from service.engine.turns import Turn


def add_tasks(
    records: Records,
    connection: Connection,
    planned: Sequence[Task],
    deadline: float,
    caller: str = LOCAL,
) -> dict[str, bool]:
    """Add tasks, needed ones first, or start them again; returns key -> whether it was done.

    Shards of a finished task are not added, unless another task reads them.
    """
    keys = {task.key for task in planned}
    loose_tasks.hold_tasks(connection, keys)
    done = find_done(connection, keys)
    over = {part.key for task in planned if task.key in done for part in task.parts}
    over -= {
        need.key
        for task in planned
        if task.key not in done | over
        for need in task.inputs.values()
        if isinstance(need, Task)
    }
    cached = dict.fromkeys(over, True)
    wanted = [task for task in planned if task.key not in done | over]
    given = turns.give_turns(connection, wanted, caller)
    for task in planned:
        if task.key not in cached:
            waiting = sum(not cached[need.key] for need in _distinct(task.needs))
            cached[task.key] = task.key in done
            if task.key not in done:
                _add(records, connection, task, waiting, deadline, given[task.key], caller)
    return cached


def find_done(connection: Connection, keys: Collection[str]) -> set[str]:
    """Find those of these tasks that are done. The status is no condition of the query: its index
    would lead to all tasks that are done.
    """
    query = sa.select(task_rows.c.key, task_rows.c.status)
    return {
        row.key
        for batch in in_batches(keys)
        for row in connection.execute(query.where(task_rows.c.key.in_(batch)))
        if row.status == "done"
    }


def _add(
    records: Records,
    connection: Connection,
    task: Task,
    waiting: int,
    deadline: float,
    turn: Turn,
    caller: str,
) -> None:
    key, now = task.key, time.time()
    status = "waiting" if waiting else "ready"
    fresh = {
        "status": status,
        "parts": json.dumps([part.key for part in task.parts]),  # may differ from last time
        "waiting_for": waiting,
        "result": None,
        "summary": None,
        "summary_id": None,
        "deadline": deadline,
        "turn": turn.at,
        "charged": turn.charged,
        "short": task.price <= SHORT_SECONDS,
        "caller": caller,
        "party": turns.find_party(caller),
        "price": task.price,
        "traceparent": contexts.get_traceparent(),
        **graph.FRESH,
    }
    if (payer := tenancy.find_team(connection)) is not None:
        fresh["payer"] = payer
    added = records.add_new(
        connection,
        task_rows,
        key=key,
        kind=task.kind,
        queue=tasks.KINDS[task.kind].queue,
        inputs=json.dumps({k: tasks.name_input(v) for k, v in task.inputs.items()}),
        parameters=json.dumps(dict(task.parameters)),
        created_at=now,
        **fresh,
    )
    if not added:
        of = task_rows.c.status, task_rows.c.deadline, task_rows.c.turn
        row = connection.execute(sa.select(*of).where(task_rows.c.key == key)).one()
        if row.status not in tasks.RESTARTED:
            shared = {"deadline": max(deadline, row.deadline), "turn": min(turn.at, row.turn)}
            graph.change_task(connection, key, **shared)
            return
        graph.change_task(connection, key, **fresh)
        connection.execute(needs.delete().where(needs.c.task_key == key))
    for need in _distinct(task.needs):
        connection.execute(needs.insert().values(task_key=key, needs_key=need.key))
    if status == "ready":
        graph.wake_task(connection, key, tasks.KINDS[task.kind].queue)


def _distinct(found: Iterable[Task]) -> list[Task]:
    return list({task.key: task for task in found}.values())
