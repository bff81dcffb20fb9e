"""Turns: the order in which ready tasks are leased, so that no caller holds up another for long.

Each task has a turn, and the ready task of a queue with the smallest one is leased first. The turns
of a caller's tasks rise by the price of each of them: who has submitted much stands behind who has
submitted little, however late the latter comes (self-clocked fair queueing: Golestani 1994). The
clock of a queue is the turn of what was leased last; a caller who was idle begins there. The keys
of a team share what one caller has.

When an attempt ends, all turns of its party, which is its caller's team or an address, move by the
difference of the seconds that it has taken from the price (`charges.py`). That difference is kept
for the party, and each task has as much of it as its turn has: those that are next are moved at
once, all others when they are next. Else a task that waits for others, or is tried again, keeps its
turn.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.plan.tasks import KINDS, UNFINISHED, Task
from service.engine.records import build_insert, count_rows
from service.engine.tables import task_rows, turns

_CLOCK = ""  # the clock of a queue is kept as the turn of a caller with this name
_NEXT = 100  # tasks of a party that are moved at once: more than are leased before one ends
_LEAST_SECONDS = 0.5  # by which a task is moved; less adds up


class Turn(NamedTuple):
    """A turn, and the seconds charged to its party that it has counted."""

    at: float
    charged: float


def find_party(caller: str) -> str:
    """Find the party that is charged for a caller: the team of a key, or else the caller itself."""
    team, is_key, _ = caller.partition("/")
    return f"{team}{is_key}"


def give_turns(connection: Connection, tasks: Iterable[Task], caller: str) -> Mapping[str, Turn]:
    """The turns of a caller's tasks, by their keys: cheap ones first, else in the given order."""
    found: dict[str, Turn] = {}
    queues: dict[str, list[Task]] = {}
    for task in tasks:
        queues.setdefault(KINDS[task.kind].queue, []).append(task)
    for queue, mine in queues.items():
        at = _begin(connection, queue, caller)
        sharing = _sharing(connection, queue, caller)
        charged = _charge(connection, queue, find_party(caller), 0.0)
        for task in sorted(mine, key=lambda task: task.price):
            at += task.price * sharing
            found[task.key] = Turn(at, charged)
        _set(connection, queue, caller, at)
    return found


def find_first_task(connection: Connection, queue: str, *, short: bool = False) -> str | None:
    """The key of the first ready task, of all or of the short ones; None if there is none."""
    found = _find_first(connection, queue, short=short)
    return None if found is None else str(found.key)


def choose_first_task(connection: Connection, queue: str, *, short: bool = False) -> str | None:
    """The key of the ready task whose turn it is, after those that are charged more have moved."""
    while (found := _find_first(connection, queue, short=short)) is not None:
        owed = 0.0 if found.party_charged is None else found.party_charged - found.charged
        if abs(owed) < _LEAST_SECONDS:
            return str(found.key)
        clock = _begin(connection, queue, _CLOCK)
        _move_next(connection, queue, found.party, found.party_charged, clock, found.key)
    return None


def _find_first(connection: Connection, queue: str, *, short: bool) -> Any:
    of_party = turns.c.queue == task_rows.c.queue, turns.c.caller == task_rows.c.party
    charged = sa.select(turns.c.charged).where(*of_party).scalar_subquery()
    columns = task_rows.c.key, task_rows.c.party, task_rows.c.charged
    query = sa.select(*columns, charged.label("party_charged"))
    query = query.where(task_rows.c.queue == queue, task_rows.c.status == "ready")
    query = query.order_by(task_rows.c.turn, task_rows.c.created_at).limit(1)
    return connection.execute(query.where(task_rows.c.short) if short else query).first()


def move_clock(connection: Connection, queue: str, turn: float) -> None:
    """A task with this turn is leased. Callers that the clock has passed are forgotten."""
    if turn > _begin(connection, queue, _CLOCK):
        _set(connection, queue, _CLOCK, turn)
        passed = turns.c.queue == queue, turns.c.caller != _CLOCK, turns.c.at <= turn
        theirs = task_rows.c.queue == queue, task_rows.c.party == turns.c.caller
        unfinished = sa.exists().where(*theirs, task_rows.c.status.in_(UNFINISHED))
        connection.execute(turns.delete().where(*passed, ~unfinished))


def shift_turns(connection: Connection, queue: str, caller: str, seconds: float) -> None:
    """Move the turns of a caller's party, but none to before the clock."""
    clock, party = _begin(connection, queue, _CLOCK), find_party(caller)
    if seconds > 0:
        _set(connection, queue, caller, _begin(connection, queue, caller))  # it may be forgotten
    is_theirs = turns.c.caller == party
    if party != caller:
        is_theirs = turns.c.caller.startswith(party, autoescape=True)
    theirs = turns.update().where(turns.c.queue == queue, is_theirs)
    connection.execute(theirs.values(at=_shift(turns.c.at, seconds, clock)))
    charged = _charge(connection, queue, party, seconds)
    _move_next(connection, queue, party, charged, clock)


def _move_next(
    connection: Connection, queue: str, party: str, charged: float, clock: float, *first: str
) -> None:
    """Move the next tasks of a party, and `first`, by what is charged since their turns."""
    keys = [*first]
    for status in ("ready", "waiting"):
        theirs = task_rows.c.queue == queue, task_rows.c.party == party
        of = sa.select(task_rows.c.key, task_rows.c.charged)
        of = of.where(*theirs, task_rows.c.status == status).order_by(task_rows.c.turn)
        rows = connection.execute(of.limit(_NEXT)).all()
        keys += [row.key for row in rows if abs(charged - row.charged) >= _LEAST_SECONDS]
    if keys:
        turn = _shift(task_rows.c.turn, charged - task_rows.c.charged, clock)
        moved = task_rows.update().where(task_rows.c.key.in_(keys))
        connection.execute(moved.values(turn=turn, charged=charged))


def _shift(
    column: sa.Column[float], by: sa.ColumnElement[float] | float, clock: float
) -> sa.Case[float]:
    """The turn moved, but not to before the clock, unless it is there."""
    later = column + by
    return sa.case((later < clock, sa.case((column < clock, column), else_=clock)), else_=later)


def _charge(connection: Connection, queue: str, party: str, seconds: float) -> float:
    """Add to the seconds that a party is charged; returns them all."""
    first = {"queue": queue, "caller": party, "at": 0.0, "charged": seconds}
    added = build_insert(connection, turns).values(**first)
    more = added.on_conflict_do_update(
        index_elements=turns.primary_key, set_={"charged": turns.c.charged + seconds}
    )
    return float(connection.execute(more.returning(turns.c.charged)).scalar_one())


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
    others = turns.c.caller.not_in((caller, find_party(caller)))
    of_team = turns.c.caller.startswith(f"{team}/", autoescape=True), others
    return 1 + count_rows(connection, turns, turns.c.queue == queue, *of_team)


def _set(connection: Connection, queue: str, caller: str, at: float) -> None:
    added = build_insert(connection, turns).values(queue=queue, caller=caller, at=at)
    connection.execute(
        added.on_conflict_do_update(index_elements=turns.primary_key, set_={"at": at})
    )
