"""What goes on for an upload when the request that began it has left."""

import asyncio
from collections.abc import Callable, Coroutine
from threading import Event
from typing import Any

import structlog

log = structlog.get_logger()

Ending = Callable[[Event], Coroutine[Any, Any, Any]]  # is told by the event that nobody wants it


class Endings:
    """The uploads that are judged and stored just now, in this process."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[asyncio.Task[Any], Event]] = {}

    async def ended(self, identity: str, end: Ending) -> Any:
        """What `end` returns or raises; it is called once for all who wait, and goes on where they
        leave.
        """
        if identity not in self._tasks:
            nobody = Event()
            task = asyncio.create_task(end(nobody))
            self._tasks[identity] = task, nobody
            task.add_done_callback(lambda ended: self._over(identity, ended))
        return await asyncio.shield(self._tasks[identity][0])

    async def give_up(self, identity: str) -> None:
        """End the judging, if it is at that; what is being stored is stored."""
        if identity in self._tasks:
            task, nobody = self._tasks[identity]
            nobody.set()
            await asyncio.wait((task,))

    def _over(self, identity: str, task: asyncio.Task[Any]) -> None:
        del self._tasks[identity]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("an upload was not stored", upload=identity, error=type(error).__name__)
