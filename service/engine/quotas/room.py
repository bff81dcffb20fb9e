"""Whether a team's quotas leave room for what it asks for; LimitReached where they do not."""

import time
from collections.abc import Iterator
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract import wording
from service.contract.errors import LimitReached
from service.contract.quotas import Quotas
from service.engine.quotas import usage
from service.engine.records import Records
from service.engine.tables import brought_columns, checkpoints, datasets, runs

Name = Literal["runs", "upload_bytes", "stored_bytes", "device_seconds"]
_SOON = 10  # seconds until the next try, where runs of one's own have to end
_LATER = 3600  # where something has to be deleted


def check_submission(records: Records, quotas: Quotas) -> None:
    """Room for one more run."""
    if quotas.runs is None and quotas.device_seconds is None:
        return
    with records.reading() as connection:
        if quotas.runs is not None and (unfinished := _unfinished(connection)) >= quotas.runs:
            raise LimitReached(
                wording.describe_too_many_runs("Your team has", "its", unfinished, quotas.runs),
                retry_after=_SOON,
            )
        _check_day(connection, quotas.device_seconds, "device_seconds", "seconds of computing")


def for_upload(records: Records, quotas: Quotas, announced: int | None) -> int | None:
    """How many bytes a body may have; None: any number. `announced`: how many it will have."""
    wanted = announced or 0
    with records.reading() as connection:
        left = [
            _check_day(connection, quotas.upload_bytes, "upload_bytes", "bytes of uploads", wanted),
            _check_stored(connection, quotas.stored_bytes, wanted),
        ]
    return min((int(most) for most in left if most is not None), default=None)


def state(records: Records, quotas: Quotas) -> Iterator[tuple[Name, float, float, int | None]]:
    """Each quota of a team that is limited: its name, its limit, what is used of it, and the
    seconds until it begins anew, if it does by itself.
    """
    tomorrow = usage.until_tomorrow(time.time())
    with records.reading() as connection:
        if quotas.runs is not None:
            yield "runs", quotas.runs, _unfinished(connection), None
        if quotas.upload_bytes is not None:
            sent = usage.used(connection, "upload_bytes")
            yield "upload_bytes", quotas.upload_bytes, sent, tomorrow
        if quotas.stored_bytes is not None:
            yield "stored_bytes", quotas.stored_bytes, stored(connection), None
        if quotas.device_seconds is not None:
            spent = usage.used(connection, "device_seconds")
            yield "device_seconds", quotas.device_seconds, spent, tomorrow


def stored(connection: Connection) -> int:
    """Bytes of a team's checkpoints, columns and versions of datasets."""
    every = (checkpoints.c.bytes, brought_columns.c.bytes, datasets.c.bytes)
    sums = [sa.select(sa.func.coalesce(sa.func.sum(column), 0)) for column in every]
    return sum(int(connection.execute(query).scalar_one()) for query in sums)


def _unfinished(connection: Connection) -> int:
    query = sa.select(sa.func.count()).select_from(runs).where(runs.c.finished_at.is_(None))
    return int(connection.execute(query).scalar_one())


def _check_day(
    connection: Connection, most: float | None, name: usage.Name, noun: str, wanted: int = 0
) -> float | None:
    """How much of today's is left."""
    if most is None:
        return None
    found = usage.used(connection, name)
    if found + wanted > most or found >= most:
        asked = f", and {wanted:,} more are asked for" if wanted else ""
        raise LimitReached(
            f"your team has used {found:,.0f} {noun} today, of {most:,.0f}{asked}: the day ends at "
            "midnight in UTC",
            retry_after=usage.until_tomorrow(time.time()),
        )
    return most - found


def _check_stored(connection: Connection, most: float | None, wanted: int) -> float | None:
    if most is None:
        return None
    found = stored(connection)
    if found + wanted > most or found >= most:
        raise LimitReached(
            f"your team keeps {found:,} bytes, of {most:,.0f}, and {wanted:,} more are asked for: "
            "delete checkpoints, columns or versions of datasets",
            retry_after=_LATER,
        )
    return most - found
