"""Turns: in which order ready works are leased, so that no caller holds up another for long.

Each work has a turn, and the ready work of a queue with the smallest one is leased first. The turns
of a caller's works rise by the price of each of them: who has submitted much stands behind who has
submitted little, however late the latter comes (self-clocked fair queueing: Golestani 1994). The
clock of a queue is the turn of what was leased last; a caller who was idle begins there. The keys
of a team share what one caller has.

A work that waits for others, or is tried again, keeps its turn.
"""

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.plan.works import KINDS, Work
from service.works.records import insert
from service.works.tables import turns, work_rows

_CLOCK = ""  # the clock of a queue is kept as the turn of a caller with this name


def given(connection: Connection, works: Iterable[Work], caller: str) -> Mapping[str, float]:
    """The turns of a caller's works, by their keys: cheap ones first, else in the given order."""
    found: dict[str, float] = {}
    for queue, mine in _by_queue(works).items():
        at = _begin(connection, queue, caller)
        sharing = _sharing(connection, queue, caller)
        for work in sorted(mine, key=lambda work: work.price):
            at += work.price * sharing
            found[work.key] = at
        _set(connection, queue, caller, at)
    return found


def first(connection: Connection, queue: str, *, short: bool = False) -> str | None:
    """The key of the ready work whose turn it is, of all or of the short ones; None if none is."""
    ready = work_rows.c.queue == queue, work_rows.c.status == "ready"
    order = work_rows.c.turn, work_rows.c.created_at
    query = sa.select(work_rows.c.key).where(*ready).order_by(*order).limit(1)
    return connection.execute(query.where(work_rows.c.short) if short else query).scalar()


def move_clock(connection: Connection, queue: str, turn: float) -> None:
    """A work with this turn is leased. Callers that the clock has passed are forgotten."""
    if turn > _clock(connection, queue):
        _set(connection, queue, _CLOCK, turn)
        passed = turns.c.queue == queue, turns.c.caller != _CLOCK, turns.c.at <= turn
        connection.execute(turns.delete().where(*passed))


def _by_queue(works: Iterable[Work]) -> Mapping[str, Sequence[Work]]:
    queues: dict[str, list[Work]] = {}
    for work in works:
        queues.setdefault(KINDS[work.kind].queue, []).append(work)
    return queues


def _begin(connection: Connection, queue: str, caller: str) -> float:
    """The caller's last turn, or the queue's clock if that is later."""
    both = turns.c.queue == queue, turns.c.caller.in_((_CLOCK, caller))
    latest = connection.execute(sa.select(sa.func.max(turns.c.at)).where(*both)).scalar()
    return latest or 0.0


def _sharing(connection: Connection, queue: str, caller: str) -> int:
    """How many keys of the caller's team have turns now: they share what one team has, however many
    they are. An address shares with nobody.
    """
    team, found, _ = caller.rpartition("/")
    if not found:
        return 1
    of_team = turns.c.caller.startswith(f"{team}/", autoescape=True), turns.c.caller != caller
    others = sa.select(sa.func.count()).select_from(turns).where(turns.c.queue == queue, *of_team)
    return 1 + int(connection.execute(others).scalar_one())


def _clock(connection: Connection, queue: str) -> float:
    return _begin(connection, queue, _CLOCK)


def _set(connection: Connection, queue: str, caller: str, at: float) -> None:
    added = insert(connection, turns).values(queue=queue, caller=caller, at=at)
    connection.execute(
        added.on_conflict_do_update(index_elements=turns.primary_key, set_={"at": at})
    )
