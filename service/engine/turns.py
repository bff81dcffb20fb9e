"""Turns: the order in which ready tasks are leased, so that no caller holds up another for long.

Each task has a turn, and the ready task of a queue with the smallest one is leased first. The turns
of a caller's tasks rise by the price of each of them: who has submitted much stands behind who has
submitted little, however late the latter comes (self-clocked fair queueing: Golestani 1994). The
clock of a queue is the turn of what was leased last; a caller who was idle begins there. The keys
of a team share what one caller has.

When an attempt ends, all turns of its caller's team move by the difference of the seconds that it
has taken from the price (`charges.py`). Else a task that waits for others, or is tried again, keeps
its turn.
"""

from collections.abc import Iterable, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.plan.tasks import KINDS, Task
from service.engine.records import build_insert, count_rows
from service.engine.tables import task_rows, turns

_CLOCK = ""  # the clock of a queue is kept as the turn of a caller with this name


def give_turns(connection: Connection, tasks: Iterable[Task], caller: str) -> Mapping[str, float]:
    """The turns of a caller's tasks, by their keys: cheap ones first, else in the given order."""
    found: dict[str, float] = {}
    queues: dict[str, list[Task]] = {}
    for task in tasks:
        queues.setdefault(KINDS[task.kind].queue, []).append(task)
    for queue, mine in queues.items():
        at = _begin(connection, queue, caller)
        sharing = _sharing(connection, queue, caller)
        for task in sorted(mine, key=lambda task: task.price):
            at += task.price * sharing
            found[task.key] = at
        _set(connection, queue, caller, at)
    return found


def find_first_task(connection: Connection, queue: str, *, short: bool = False) -> str | None:
    """The key of the ready task whose turn it is, of all or of the short ones; None if none is."""
    ready = task_rows.c.queue == queue, task_rows.c.status == "ready"
    order = task_rows.c.turn, task_rows.c.created_at
    query = sa.select(task_rows.c.key).where(*ready).order_by(*order).limit(1)
    return connection.execute(query.where(task_rows.c.short) if short else query).scalar()


def move_clock(connection: Connection, queue: str, turn: float) -> None:
    """A task with this turn is leased. Callers that the clock has passed are forgotten."""
    if turn > _begin(connection, queue, _CLOCK):
        _set(connection, queue, _CLOCK, turn)
        passed = turns.c.queue == queue, turns.c.caller != _CLOCK, turns.c.at <= turn
        connection.execute(turns.delete().where(*passed))


def shift_turns(connection: Connection, queue: str, caller: str, seconds: float) -> None:
    """Move the turns of a caller, or of all keys of its team, but none to before the clock."""
    clock = _begin(connection, queue, _CLOCK)
    team, is_key, _ = caller.partition("/")

    def of_team(column: sa.Column[str]) -> sa.ColumnElement[bool]:
        return column.startswith(f"{team}/", autoescape=True) if is_key else column == caller

    def shifted(column: sa.Column[float]) -> sa.ColumnElement[float]:
        later = column + seconds
        return sa.case((later < clock, sa.case((column < clock, column), else_=clock)), else_=later)

    if seconds > 0:
        _set(connection, queue, caller, _begin(connection, queue, caller))  # it may be forgotten
    theirs = turns.c.queue == queue, of_team(turns.c.caller)
    connection.execute(turns.update().where(*theirs).values(at=shifted(turns.c.at)))
    unbegun = task_rows.c.queue == queue, task_rows.c.status.in_(("ready", "waiting"))
    connection.execute(
        task_rows.update()
        .where(*unbegun, of_team(task_rows.c.caller))
        .values(turn=shifted(task_rows.c.turn))
    )


def _begin(connection: Connection, queue: str, caller: str) -> float:
    """The caller's last turn, or the queue's clock if that is later."""
    both = turns.c.queue == queue, turns.c.caller.in_((_CLOCK, caller))
    latest = connection.execute(sa.select(sa.func.max(turns.c.at)).where(*both)).scalar()
    return latest or 0.0


def _sharing(connection: Connection, queue: str, caller: str) -> int:
    """Number of keys with turns that share the team's part. An address shares with nobody."""
    team, found, _ = caller.partition("/")
    if not found:
        return 1
    of_team = turns.c.caller.startswith(f"{team}/", autoescape=True), turns.c.caller != caller
    return 1 + count_rows(connection, turns, turns.c.queue == queue, *of_team)


def _set(connection: Connection, queue: str, caller: str, at: float) -> None:
    added = build_insert(connection, turns).values(queue=queue, caller=caller, at=at)
    connection.execute(
        added.on_conflict_do_update(index_elements=turns.primary_key, set_={"at": at})
    )
