"""How many runs may be unfinished at once: all together, and those of one caller."""

import math
import time

import sqlalchemy as sa

from service.contract import wording
from service.contract.errors import QueueFull
from service.contract.wording import count_noun
from service.engine.records import Records
from service.engine.tables import runs

_LOOKED_BACK = 60.0  # seconds, for the pace at which runs end
_LATEST = 20.0  # seconds until the next try; clients of ours try for 30


def check(records: Records, most: int, caller: str) -> None:
    """Raise QueueFull if this caller may submit nothing now.

    One caller has at most half of the places that others leave, so there is always one for others.
    """
    own, total = _unfinished(records, caller)
    places = max(1, (most - (total - own)) // 2)
    if total >= most:
        has = f"The service has {count_noun(total, 'unfinished run')}; its limit is {most}"
        raise _full(records, f"{has}. Wait until one ends.", 1)
    if own >= places:
        detail = wording.describe_too_many_runs("You have", "your", own, places)
        raise _full(records, detail, own - places + 1)


def _unfinished(records: Records, caller: str) -> tuple[int, int]:
    """How many runs of the caller, and of all, have not ended."""
    own = sa.func.count().filter(runs.c.caller == caller)
    query = sa.select(own, sa.func.count()).where(runs.c.finished_at.is_(None))
    with records.reading() as connection:
        mine, total = connection.execute(query).one()
    return mine, total


def _full(records: Records, detail: str, ahead: int) -> QueueFull:
    """`ahead`: how many of them have to end before there is a place."""
    query = sa.select(sa.func.count()).where(runs.c.finished_at > time.time() - _LOOKED_BACK)
    with records.reading() as connection:
        ended = connection.execute(query).scalar_one()
    seconds = min(_LATEST, max(1.0, ahead * _LOOKED_BACK / max(ended, 1)))
    have = f"{count_noun(ended, 'run')} {'has' if ended == 1 else 'have'} ended"
    pace = f"Within the last minute {have}; try again in {math.ceil(seconds)} s."
    return QueueFull(f"{detail} {pace}", retry_after=math.ceil(seconds))
