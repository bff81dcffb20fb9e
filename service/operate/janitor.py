"""Janitor: repairs leases, wake-ups, deadlines and uploads at intervals.

Several janitors may run without a leader, since each step may be done twice.
"""

import time
from collections.abc import Callable

import redis
import structlog

from service.engine import fleet_status, history, task_expiry
from service.engine.service_parts import ServiceParts
from service.retention import retention_policy, upload_deletion
from service.retention.retention_policy import RetentionPolicy
from service.runs import evaluation_listener
from service.stored import garbage, thumbnails

log = structlog.get_logger()

PERIOD = 2.0  # seconds; with a lease of 12 s a silent worker's task runs again within 20 s
COLLECT_PERIOD = 3600.0  # between two garbage collections
TELL_PERIOD = 15.0  # how often the janitor tells that it lives
_SETTLED = 2.0  # a task without a wake-up is queued again after so long
_TELLINGS = 20  # transactions in a round that tell runs of their tasks: 2 to 4 s
_UPLOAD_SECONDS = 24 * 3600


def repair_once(parts: ServiceParts) -> dict[str, int]:
    """One round of repairs; returns the number of each."""
    records, queue = parts.records, parts.queue
    done = {
        "leases": task_expiry.expire_leases(records),
        "deaths": task_expiry.end_leases_of_dead_workers(records, parts.places.home),
        "deadlines": task_expiry.expire_deadlines(records),
        "told": history.update_noted_runs(records, most=_TELLINGS),
    }
    try:
        done["wakeups"] = queue.flush(records)
        done["forgotten"] = queue.ring_again(records, before=time.time() - _SETTLED)
    except (redis.RedisError, OSError) as error:
        log.warning("redis is away", error=type(error).__name__)
    done["uploads"] = parts.blobs.sweep_uploads(time.time() - _UPLOAD_SECONDS)
    done["unfinished"] = upload_deletion.delete_expired_uploads(records, parts.blobs)
    return done


def run_janitor(
    parts: ServiceParts, wait: Callable[[float], bool], policy: RetentionPolicy
) -> None:
    """Run rounds until `wait(seconds)` returns True. `policy`: what is kept for how long."""
    evaluation_listener.listen_to_engine()
    collect_at = time.monotonic() + COLLECT_PERIOD
    tell_at = time.monotonic()
    while not wait(PERIOD):
        try:
            done = repair_once(parts)
            if time.monotonic() > tell_at:
                tell_at = time.monotonic() + TELL_PERIOD
                fleet_status.note_moment(
                    parts.records, fleet_status.LAST_JANITOR_ROUND, time.time()
                )
            if time.monotonic() > collect_at:
                collect_at = time.monotonic() + COLLECT_PERIOD
                done |= retention_policy.apply_policy(parts.records, policy)
                unseen = time.time() - thumbnails.KEPT_SECONDS
                done["thumbnails"] = thumbnails.forget_unseen_thumbnails(parts.records, unseen)
                done["objects"] = garbage.collect_garbage(parts.records, parts.blobs)
                done["staged"] = upload_deletion.delete_orphaned_parts(parts.records, parts.blobs)
            if any(done.values()):
                log.info("swept", **{name: count for name, count in done.items() if count})
        except Exception:
            log.exception("a round of the janitor failed; the next one tries again")
