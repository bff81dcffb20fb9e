"""Retries: which failures may pass, and exponential pauses with jitter, for a limited time."""

import logging
import random
import time
from collections.abc import Collection

from prescore import plain_text
from prescore.errors import PrescoreClientError, Refused, ServiceError, Unreachable

PASSING = frozenset({429, 502, 503, 504})  # a later attempt may succeed
IN_FLIGHT = 409  # the first attempt, whose answer was lost, is still being answered
FIRST_SECONDS = 0.2
LONGEST_SECONDS = 8.0
RETRY_SECONDS = 600.0  # the longest pause that a service may ask for

_log = logging.getLogger("prescore")


# Tried with tenacity: 7 lines more, and 17 us a call instead of 0.3, since events and training
# watches need pauses of their own. httpx-retries repeats one request; an attempt here may be
# several requests (ask, then upload), and builds a streamed body again.
class Backoff:
    """The pauses between attempts, which end `patience` seconds after the start."""

    def __init__(self, patience: float) -> None:
        self._until = time.monotonic() + patience
        self._failures = 0

    def after(self, error: PrescoreClientError, at_least: float = 0.0) -> float:
        """Seconds until the next attempt; raises `error` if that would be after the end."""
        seconds = max(choose_pause(self._failures, error), at_least)
        if time.monotonic() + seconds > self._until:
            raise error
        self._failures += 1
        _log.warning(
            "%s; trying again in %.1f s", plain_text.line(str(error).partition("\n")[0]), seconds
        )
        return seconds


def choose_pause(failures: int, error: PrescoreClientError) -> float:
    """Seconds to wait after `error`, with so many failures before it."""
    longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures, 32))
    return max(longest * random.uniform(0.5, 1), _choose_retry_after(error))  # noqa: S311  jitter is no secret


def may_pass(error: PrescoreClientError, statuses: Collection[int] = PASSING) -> bool:
    answered = isinstance(error, Refused | ServiceError) and error.status in statuses
    return answered or isinstance(error, Unreachable)


def _choose_retry_after(error: PrescoreClientError) -> float:
    """Retry-After, or up to a quarter more, so that clients do not all return at the same time."""
    if isinstance(error, Refused | ServiceError) and error.retry_after is not None:
        seconds = min(error.retry_after, RETRY_SECONDS)
        return seconds * random.uniform(1, 1.25)  # noqa: S311
    return 0.0
