"""Rate limits: requests of each key in a minute, over all processes of a fleet; and requests of a
key and a team at the same time, in this process.

They are counted in this process, so that a request waits for nothing; once a second the processes
of a fleet add up what they have counted, in Redis. So a limit holds to a second's requests.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import structlog

from service.contract.errors import LimitReached
from service.engine.task_queue import WakeUpQueue
from service.http import watchers

log = structlog.get_logger()

WINDOW = 60  # seconds
_PERIOD = 1.0  # seconds between two looks at what others have counted
_RETRY = 1  # seconds
_NAME = "prescore:requests:{window}:{key}"


@dataclass
class _KeyCount:
    """Count of a key. `here`: in this process, of which `told` were added up; `elsewhere`: in
    others.
    """

    here: int = 0
    told: int = 0
    elsewhere: int = 0


@dataclass(frozen=True)
class RequestRate:
    """Rate of requests. `left`: requests that this minute leaves; `seconds`: until the next one."""

    most: int
    left: int
    seconds: int

    @property
    def is_over(self) -> bool:
        return self.left < 0

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """RateLimit header fields, by the IETF's draft."""
        policy = f'"requests";q={self.most};w={WINDOW}'
        now = f'"requests";r={max(self.left, 0)};t={self.seconds}'
        return [(b"ratelimit-policy", policy.encode()), (b"ratelimit", now.encode())]


class RequestsInProgress:
    """Requests that have begun and not ended: waiting polls and streams are among them."""

    def __init__(self) -> None:
        self._many: Counter[str] = Counter()

    @contextmanager
    def hold(self, most: Mapping[str, int]) -> Iterator[None]:
        """Count a request by its names, such as its team's, each of which may have so many."""
        for name, limit in most.items():
            if self._many[name] >= limit:
                raise LimitReached(
                    f"expected at most {limit} requests at the same time with {name}, waiting "
                    "polls and streams among them; end some of them, or try again later",
                    retry_after=_RETRY,
                )
        self._many.update(most.keys())
        try:
            yield
        finally:
            for name in most:
                self._many[name] -= 1
                if not self._many[name]:
                    del self._many[name]


class RateLimiter:
    def __init__(self, shared: WakeUpQueue) -> None:
        self._shared = shared
        self._window = 0
        self._counted: dict[str, _KeyCount] = {}

    def count(self, key: str, most: float, now: float) -> RequestRate:
        """Count a request of a key that may make so many a minute."""
        window = int(now // WINDOW)
        if window != self._window:
            self._window, self._counted = window, {}
        counted = self._counted.setdefault(key, _KeyCount())
        counted.here += 1
        left = int(most) - counted.here - counted.elsewhere
        return RequestRate(int(most), left, WINDOW - int(now % WINDOW))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with watchers.run_in_background(self._go_on()):
            yield

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(_PERIOD)
            try:
                await self.exchange()
            except Exception as error:  # noqa: BLE001  Redis is away: each process counts alone
                log.warning("requests are counted here alone", error=type(error).__name__)

    async def exchange(self) -> None:
        """Tell what was counted here since the last time, and learn what was counted elsewhere."""
        window, counted = self._window, self._counted
        more = {key: one.here - one.told for key, one in counted.items() if one.here > one.told}
        if not more:
            return
        names = {_NAME.format(window=window, key=key): key for key in more}
        asked = {name: more[key] for name, key in names.items()}
        sums = await asyncio.to_thread(self._shared.add_up, asked, 2 * WINDOW)
        for name, total in sums.items():
            one = counted[names[name]]
            one.told += asked[name]
            one.elsewhere = max(0, total - one.told)
