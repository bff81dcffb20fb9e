"""Quotas: what a team has used today (in UTC), and whether there is room for more."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract import wording
from service.contract.errors import LimitReached, QueueFull
from service.contract.quotas import Quotas
from service.contract.wording import count_noun
from service.engine.records import Records, build_insert, count_rows
from service.engine.tables import brought_columns, checkpoints, datasets, runs, usage

UsageName = Literal["upload_bytes", "device_seconds"]
DAY = 24 * 3600
_KEPT_DAYS = 40


def number_day(now: float) -> int:
    return int(now // DAY)


def count_seconds_of_day(now: float) -> int:
    """Seconds until the day ends, rounded up."""
    return DAY - int(now % DAY)


def add_usage(connection: Connection, team: str, name: UsageName, amount: float) -> None:
    """Note that a team has used so much more."""
    own = {"team": team, "name": name, "day": number_day(time.time())}
    added = build_insert(connection, usage).values(**own, amount=amount)
    more = {"amount": usage.c.amount + amount}
    connection.execute(added.on_conflict_do_update(index_elements=usage.primary_key, set_=more))


def read_usage(connection: Connection, name: UsageName) -> float:
    """The amount that the connection's team has used today."""
    query = sa.select(usage.c.amount).where(
        usage.c.name == name, usage.c.day == number_day(time.time())
    )
    return float(connection.execute(query).scalar() or 0.0)


def trim_usage(records: Records, now: float) -> int:
    """Delete the usage of days long past; returns the number of rows."""
    old = usage.delete().where(usage.c.day < number_day(now) - _KEPT_DAYS)
    with records.transaction() as connection:
        return connection.execute(old).rowcount


QuotaName = Literal["runs", "upload_bytes", "stored_bytes", "device_seconds"]
_SOON = 10  # seconds until the next try, where runs of one's own have to end
_LATER = 3600  # where something has to be deleted


def check_submission_quota(records: Records, quotas: Quotas) -> None:
    """Room for one more run."""
    if quotas.runs is None and quotas.device_seconds is None:
        return
    with records.reading() as connection:
        if quotas.runs is not None and (unfinished := _count_unfinished(connection)) >= quotas.runs:
            raise LimitReached(
                wording.describe_too_many_runs("Your team has", "its", unfinished, quotas.runs),
                retry_after=_SOON,
            )
        _check_day(connection, quotas.device_seconds, "device_seconds", "seconds of computing")


def check_computing_quota(records: Records, quotas: Quotas) -> None:
    """Seconds of computing are left today."""
    with records.reading() as connection:
        _check_day(connection, quotas.device_seconds, "device_seconds", "seconds of computing")


def check_upload_quota(records: Records, quotas: Quotas, announced: int | None) -> int | None:
    """Bytes that a body may have; None: any number. `announced`: how many it will have."""
    wanted = announced or 0
    with records.reading() as connection:
        left = [
            _check_day(connection, quotas.upload_bytes, "upload_bytes", "bytes of uploads", wanted),
            _check_stored(connection, quotas.stored_bytes, wanted),
        ]
    return min((int(most) for most in left if most is not None), default=None)


def read_quotas(
    records: Records, quotas: Quotas
) -> Iterator[tuple[QuotaName, float, float, int | None]]:
    """Each quota: its name, its limit, what is used of it, seconds until it begins anew."""
    tomorrow = count_seconds_of_day(time.time())
    reads: Mapping[QuotaName, tuple[Callable[[Connection], float], int | None]] = {
        "runs": (_count_unfinished, None),
        "upload_bytes": (partial(read_usage, name="upload_bytes"), tomorrow),
        "stored_bytes": (count_stored_bytes, None),
        "device_seconds": (partial(read_usage, name="device_seconds"), tomorrow),
    }
    with records.reading() as connection:
        for name, (read, seconds) in reads.items():
            limit = getattr(quotas, name)
            if limit is not None:
                yield name, limit, read(connection), seconds


def count_stored_bytes(connection: Connection) -> int:
    """Bytes of a team's checkpoints, columns and versions of datasets."""
    every = (checkpoints.c.bytes, brought_columns.c.bytes, datasets.c.bytes)
    sums = [sa.select(sa.func.coalesce(sa.func.sum(column), 0)) for column in every]
    return sum(int(connection.execute(query).scalar_one()) for query in sums)


def _count_unfinished(connection: Connection) -> int:
    return count_rows(connection, runs, runs.c.finished_at.is_(None))


def _check_day(
    connection: Connection, most: float | None, name: UsageName, noun: str, wanted: int = 0
) -> float | None:
    """The rest of today's quota; None without one. LimitReached where it is not enough."""
    if most is None:
        return None
    used = read_usage(connection, name)
    asked = f", and {wanted:,} more are asked for" if wanted else ""
    told = f"your team has used {used:,.0f} {noun} today, of {most:,.0f}{asked}: the day ends at "
    return _find_rest(
        most, used, wanted, f"{told}midnight in UTC", count_seconds_of_day(time.time())
    )


def _check_stored(connection: Connection, most: float | None, wanted: int) -> float | None:
    if most is None:
        return None
    kept = count_stored_bytes(connection)
    told = f"your team keeps {kept:,} bytes, of {most:,.0f}, and {wanted:,} more are asked for: "
    advice = "delete checkpoints, columns or versions of datasets"
    return _find_rest(most, kept, wanted, told + advice, _LATER)


def _find_rest(most: float, used: float, wanted: int, detail: str, retry_after: int) -> float:
    if used + wanted > most or used >= most:
        raise LimitReached(detail, retry_after=retry_after)
    return most - used


_LOOKED_BACK = 60.0  # seconds, for the pace at which runs end
_LATEST = 20.0  # seconds until the next try; clients of ours try for 30


def check_unfinished_runs(records: Records, most: int, caller: str) -> None:
    """Raise QueueFull if this caller may submit nothing now.

    One caller has at most half of the places that others leave, so there is always one for others.
    """
    own_runs = sa.func.count().filter(runs.c.caller == caller)
    query = sa.select(own_runs, sa.func.count()).where(runs.c.finished_at.is_(None))
    with records.reading() as connection:
        own, total = connection.execute(query).one()
    places = max(1, (most - (total - own)) // 2)
    if total >= most:
        has = f"The service has {count_noun(total, 'unfinished run')}; its limit is {most}"
        raise _full(records, f"{has}. Wait until one ends.", 1)
    if own >= places:
        detail = wording.describe_too_many_runs("You have", "your", own, places)
        raise _full(records, detail, own - places + 1)


def _full(records: Records, detail: str, ahead: int) -> QueueFull:
    """Refuse for a full queue. `ahead`: how many runs have to end before there is a place."""
    with records.reading() as connection:
        ended = count_rows(connection, runs, runs.c.finished_at > time.time() - _LOOKED_BACK)
    seconds = min(_LATEST, max(1.0, ahead * _LOOKED_BACK / max(ended, 1)))
    have = f"{count_noun(ended, 'run')} {'has' if ended == 1 else 'have'} ended"
    pace = f"Within the last minute {have}; try again in {math.ceil(seconds)} s."
    return QueueFull(f"{detail} {pace}", retry_after=math.ceil(seconds))
