"""Retention: evaluations and comparisons that ended long ago are deleted, except those with a label
that the operator protects, the best of each board, and those that unfinished runs need. Probes,
studies and trainings stay: others are measured by them.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from service.access import audit, keys
from service.engine import history, quotas
from service.engine.records import Records
from service.engine.tables import labels, runs, score_rows
from service.retention import run_deletion
from service.retention.run_deletion import find_unfinished_naming

_DAY = 24 * 3600.0
_KINDS = ("evaluation", "comparison")
_AT_ONCE = 20  # runs in a transaction, during which all writers wait
_TRANSACTIONS = 50  # of each step, in one round
LOOKED_BACK_DAYS = 30  # how long attempts, and the events of runs that have ended, are kept


@dataclass(frozen=True)
class RetentionPolicy:
    """`keep_days`: None for ever. `protected`: labels NAME=VALUE that keep a run for ever."""

    keep_days: int | None = None
    audit_days: int = 365
    protected: frozenset[str] = frozenset()


def apply_policy(records: Records, policy: RetentionPolicy) -> dict[str, int]:
    """Delete what the policy no longer keeps, some of it if that is much; returns the numbers."""
    now = time.time()
    looked_back = now - LOOKED_BACK_DAYS * _DAY
    done = dict.fromkeys(("expired", "attempts", "event logs", "audit", "usage", "jobs"), 0)
    for _ in range(_TRANSACTIONS):
        some = {
            "expired": _expire(records, policy, now),
            "attempts": history.trim_attempts(records, looked_back),
            "event logs": history.trim_events(records, looked_back),
            "audit": audit.trim_changes(records, now - policy.audit_days * _DAY),
            "usage": quotas.trim_usage(records, now),
            "jobs": keys.delete_ended_job_keys(records, now),
        }
        done = {name: many + some[name] for name, many in done.items()}
        if not any(some.values()):
            break
    return done


def _expire(records: Records, policy: RetentionPolicy, now: float) -> int:
    """Delete some of the runs that ended too long ago; returns how many."""
    if policy.keep_days is None:
        return 0
    expired = _expired(policy, now - policy.keep_days * _DAY)
    oldest = expired.order_by(runs.c.finished_at, runs.c.id).limit(_AT_ONCE)
    identities = [row.id for row in records.read(oldest)]
    if not identities:
        return 0
    with records.transaction() as connection:
        again = expired.where(runs.c.id.in_(identities))  # a label may have been set since
        found = connection.execute(again).scalars().all()
        gone = [each for each in found if not find_unfinished_naming(connection, each)]
        for identity in gone:
            run_deletion.remove_run(connection, identity)
            audit.note_change(
                connection, audit.SERVICE, "run.expired", identity, days=policy.keep_days
            )
    return len(gone)


def _expired(policy: RetentionPolicy, before: float) -> sa.Select[Any]:
    """The runs that ended before that time and are not kept for what they say."""
    return sa.select(runs.c.id).where(
        runs.c.kind.in_(_KINDS),
        runs.c.finished_at < before,
        ~_is_protected(policy.protected),
        ~_is_best(),
    )


def _is_protected(protected: Collection[str]) -> sa.ColumnElement[bool]:
    pairs = [tuple(label.split("=", 1)) for label in protected if "=" in label]
    if not pairs:
        return sa.false()
    has = sa.tuple_(labels.c.name, labels.c.value).in_(pairs)
    return sa.exists().where(labels.c.run_id == runs.c.id, has)


def _is_best() -> sa.ColumnElement[bool]:
    """True if a run is the first on one of its boards."""
    better = score_rows.alias()
    order = ("place", "created_at", "run_id")
    above = sa.exists().where(
        better.c.board_id == score_rows.c.board_id,
        better.c.first,
        sa.tuple_(*(better.c[name] for name in order))
        < sa.tuple_(*(score_rows.c[name] for name in order)),
    )
    return sa.exists().where(score_rows.c.run_id == runs.c.id, score_rows.c.first, ~above)
