"""When to try again and how long to wait: exponentially longer, with jitter, bounded in total."""

import logging
import random
import time
from collections.abc import Callable, Collection
from typing import TypeVar

from prescore.errors import PrescoreClientError, Refused, ServiceError, Unreachable

PASSING = frozenset({429, 502, 503, 504})  # answers that may well be others in a moment
FIRST_SECONDS = 0.2
LONGEST_SECONDS = 8.0

T = TypeVar("T")
_log = logging.getLogger("prescore")


# Tried with tenacity: 7 lines more, and 17 us a call instead of 0.3, for those who listen to events
# or watch a training need pauses of their own. httpx-retries repeats one request; an attempt here
# may be several (ask, then upload), and makes a streamed body anew.
class Backoff:
    """The pauses of one series of attempts, which ends `patience` seconds after its start."""

    def __init__(self, patience: float) -> None:
        self._until = time.monotonic() + patience
        self._failures = 0

    def after(self, error: PrescoreClientError, at_least: float = 0.0) -> None:
        """Sleep before the next attempt; raises `error` where that one would come too late."""
        wait = max(pause(self._failures, error), at_least)
        if time.monotonic() + wait > self._until:
            raise error
        self._failures += 1
        _log.warning("%s; trying again in %.1f s", str(error).splitlines()[0], wait)
        time.sleep(wait)


def persistently(
    attempt: Callable[[], T], patience: float, statuses: Collection[int] = PASSING
) -> T:
    """What `attempt` returns; it is called again after failures that pass."""
    backoff = Backoff(patience)
    while True:
        try:
            return attempt()
        except PrescoreClientError as error:
            if not passes(error, statuses):
                raise
            backoff.after(error)


def pause(failures: int, error: PrescoreClientError) -> float:
    """After so many failures before this one, in seconds."""
    longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures, 32))
    return max(longest * random.uniform(0.5, 1), _asked(error))  # noqa: S311  jitter is no secret


def passes(error: PrescoreClientError, statuses: Collection[int] = PASSING) -> bool:
    answered = isinstance(error, Refused | ServiceError) and error.status in statuses
    return answered or isinstance(error, Unreachable)


def _asked(error: PrescoreClientError) -> float:
    """Retry-After is a lower bound; a quarter more spreads those who were told the same."""
    if isinstance(error, Refused | ServiceError) and error.retry_after is not None:
        return error.retry_after * random.uniform(1, 1.25)  # noqa: S311
    return 0.0
