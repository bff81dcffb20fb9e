"""Waiting for changes of runs: one task polls the database for all requests that wait.

Any process may change a run, so the database is polled: one query each tenth of a second for all
runs that requests wait for.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import sqlalchemy as sa
import structlog

from service.engine.records import Records
from service.engine.tables import runs
from service.http import background

log = structlog.get_logger()

PERIOD = 0.1


class Watcher:
    def __init__(self, records: Records) -> None:
        self._records = records
        self._waiting: dict[str, dict[asyncio.Future[int], int]] = defaultdict(dict)
        self._some = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            async with background.running(self._look()):
                yield
        finally:
            for futures in self._waiting.values():
                for future in futures:
                    future.cancel()

    async def changed(self, identity: str, version: int, seconds: float) -> int | None:
        """The run's new version as soon as it is not `version`; None after `seconds`."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[identity][future] = version
        self._some.set()
        try:
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return None
        finally:
            self._waiting[identity].pop(future, None)
            if not self._waiting[identity]:
                del self._waiting[identity]

    async def _look(self) -> None:
        while True:
            await self._some.wait()
            try:
                self._tell(await asyncio.to_thread(self._versions, list(self._waiting)))
            except sa.exc.SQLAlchemyError as error:
                log.warning("the record is away", error=type(error).__name__)
            if not self._waiting:
                self._some.clear()
            await asyncio.sleep(PERIOD)

    def _versions(self, identities: list[str]) -> Mapping[str, int]:
        query = sa.select(runs.c.id, runs.c.version).where(runs.c.id.in_(identities))
        with self._records.reading() as connection:
            return dict(connection.execute(query).all())

    def _tell(self, versions: Mapping[str, int]) -> None:
        for identity, now in versions.items():
            for future, seen in list(self._waiting.get(identity, {}).items()):
                if now != seen and not future.done():
                    future.set_result(now)
