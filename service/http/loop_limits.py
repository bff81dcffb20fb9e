"""Limits of what an event loop does at a time."""

import asyncio
from types import TracebackType
from weakref import WeakKeyDictionary


class LoopLimit:
    """Semaphore of each event loop. One of asyncio belongs to the first loop in which it is waited
    for, and fails in that of another service in this process.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    def locked(self) -> bool:
        return self._find_semaphore().locked()

    async def __aenter__(self) -> None:
        await self._find_semaphore().acquire()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._find_semaphore().release()

    def _find_semaphore(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        return self._semaphores.setdefault(loop, asyncio.Semaphore(self._most))
