"""Repairs at intervals: expired leases, dead workers, lost wake-ups, runs that were not told of a
change, deadlines, unfinished uploads, what is kept no longer, garbage.

Several janitors may run without a leader, since each step may be done twice.
"""

import time
from collections.abc import Callable

import redis
import structlog

from service.engine import endings, telling
from service.engine.kept import moments
from service.engine.parts import Parts
from service.runs.life import retention
from service.runs.life.retention import Policy
from service.stored import garbage, thumbnails
from service.stored.unfinished import expiry

log = structlog.get_logger()

PERIOD = 2.0  # seconds; with a lease of 12 s a silent worker's task runs again within 20 s
COLLECT_PERIOD = 3600.0  # between two garbage collections
TELL_PERIOD = 15.0  # how often the janitor tells that it lives
_SETTLED = 2.0  # a task without a wake-up is queued again after so long
_TELLINGS = 20  # transactions in a round that tell runs of their tasks: 2 to 4 s
_UPLOAD_SECONDS = 24 * 3600


def sweep(parts: Parts) -> dict[str, int]:
    """One round of repairs; returns the number of each."""
    records, queue = parts.records, parts.queue
    done = {
        "leases": endings.expire_leases(records),
        "deaths": endings.end_leases_of_dead_workers(records, parts.places.home),
        "deadlines": endings.expire_deadlines(records),
        "told": telling.tell_others(records, most=_TELLINGS),
    }
    try:
        done["wakeups"] = queue.flush(records)
        done["forgotten"] = queue.ring_again(records, before=time.time() - _SETTLED)
    except (redis.RedisError, OSError) as error:
        log.warning("redis is away", error=type(error).__name__)
    done["uploads"] = parts.blobs.sweep_uploads(time.time() - _UPLOAD_SECONDS)
    done["unfinished"] = expiry.sweep(records, parts.blobs)
    return done


def run(parts: Parts, wait: Callable[[float], bool], policy: Policy) -> None:
    """Run rounds until `wait(seconds)` returns True. `policy`: what is kept for how long."""
    collect_at = time.monotonic() + COLLECT_PERIOD
    tell_at = time.monotonic()
    while not wait(PERIOD):
        try:
            done = sweep(parts)
            if time.monotonic() > tell_at:
                tell_at = time.monotonic() + TELL_PERIOD
                moments.note(parts.records, moments.JANITOR, time.time())
            if time.monotonic() > collect_at:
                collect_at = time.monotonic() + COLLECT_PERIOD
                done |= retention.apply(parts.records, policy)
                unseen = time.time() - thumbnails.KEPT_SECONDS
                done["thumbnails"] = thumbnails.forget_unseen(parts.records, unseen)
                done["objects"] = garbage.collect(parts.records, parts.blobs)
                done["staged"] = expiry.sweep_staged(parts.records, parts.blobs)
            if any(done.values()):
                log.info("swept", **{name: count for name, count in done.items() if count})
        except Exception:
            log.exception("a round of the janitor failed; the next one tries again")
