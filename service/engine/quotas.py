"""Quotas: what a team has used today (in UTC), and whether there is room for more."""

import math
import time
from collections.abc import Iterator
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract import wording
from service.contract.errors import LimitReached, QueueFull
from service.contract.quotas import Quotas
from service.contract.wording import count_noun
from service.engine.records import Records, build_insert
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
    """Forget days that are long gone; returns how many rows."""
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
    """Each quota of a team that is limited: its name, its limit, what is used of it, and the
    seconds until it begins anew, if it does by itself.
    """
    tomorrow = count_seconds_of_day(time.time())
    with records.reading() as connection:
        if quotas.runs is not None:
            yield "runs", quotas.runs, _count_unfinished(connection), None
        if quotas.upload_bytes is not None:
            sent = read_usage(connection, "upload_bytes")
            yield "upload_bytes", quotas.upload_bytes, sent, tomorrow
        if quotas.stored_bytes is not None:
            yield "stored_bytes", quotas.stored_bytes, count_stored_bytes(connection), None
        if quotas.device_seconds is not None:
            spent = read_usage(connection, "device_seconds")
            yield "device_seconds", quotas.device_seconds, spent, tomorrow


def count_stored_bytes(connection: Connection) -> int:
    """Bytes of a team's checkpoints, columns and versions of datasets."""
    every = (checkpoints.c.bytes, brought_columns.c.bytes, datasets.c.bytes)
    sums = [sa.select(sa.func.coalesce(sa.func.sum(column), 0)) for column in every]
    return sum(int(connection.execute(query).scalar_one()) for query in sums)


def _count_unfinished(connection: Connection) -> int:
    query = sa.select(sa.func.count()).select_from(runs).where(runs.c.finished_at.is_(None))
    return int(connection.execute(query).scalar_one())


def _check_day(
    connection: Connection, most: float | None, name: UsageName, noun: str, wanted: int = 0
) -> float | None:
    """The rest of today's quota; None without one. LimitReached where it is not enough."""
    if most is None:
        return None
    found = read_usage(connection, name)
    if found + wanted > most or found >= most:
        asked = f", and {wanted:,} more are asked for" if wanted else ""
        raise LimitReached(
            f"your team has used {found:,.0f} {noun} today, of {most:,.0f}{asked}: the day ends at "
            "midnight in UTC",
            retry_after=count_seconds_of_day(time.time()),
        )
    return most - found


def _check_stored(connection: Connection, most: float | None, wanted: int) -> float | None:
    if most is None:
        return None
    found = count_stored_bytes(connection)
    if found + wanted > most or found >= most:
        raise LimitReached(
            f"your team keeps {found:,} bytes, of {most:,.0f}, and {wanted:,} more are asked for: "
            "delete checkpoints, columns or versions of datasets",
            retry_after=_LATER,
        )
    return most - found


_LOOKED_BACK = 60.0  # seconds, for the pace at which runs end
_LATEST = 20.0  # seconds until the next try; clients of ours try for 30


def check_unfinished_runs(records: Records, most: int, caller: str) -> None:
    """Raise QueueFull if this caller may submit nothing now.

    One caller has at most half of the places that others leave, so there is always one for others.
    """
    own, total = _count_unfinished_of_caller(records, caller)
    places = max(1, (most - (total - own)) // 2)
    if total >= most:
        has = f"The service has {count_noun(total, 'unfinished run')}; its limit is {most}"
        raise _full(records, f"{has}. Wait until one ends.", 1)
    if own >= places:
        detail = wording.describe_too_many_runs("You have", "your", own, places)
        raise _full(records, detail, own - places + 1)


def _count_unfinished_of_caller(records: Records, caller: str) -> tuple[int, int]:
    """The number of unfinished runs: of the caller, and of all."""
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
