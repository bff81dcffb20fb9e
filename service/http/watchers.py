"""Watchers: one query finds changes for all requests that wait for runs, or listen to a team.

Any process may change a run, so the database is polled: one query each tenth of a second for all
runs that requests wait for.
"""

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
import structlog

from service.engine.records import Records
from service.engine.tables import runs

log = structlog.get_logger()

PERIOD = 0.1


class RunWatcher:
    def __init__(self, records: Records) -> None:
        self._records = records
        self._waiting: dict[str, dict[asyncio.Future[int], int]] = defaultdict(dict)
        self._some = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            async with run_in_background(self._look()):
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


MOST_WATCHED = 500  # unfinished runs, and ended ones, that are looked at: the newest
RECENT_SECONDS = 30.0  # seconds for which an ended run is looked at
_VERSION_COLUMNS = (runs.c.id, runs.c.kind, runs.c.version, runs.c.status)

RunVersion = tuple[str, int, str]  # its kind, version and status
RunVersions = Mapping[str, RunVersion]


@dataclass
class _WatchedTeam:
    records: Records
    seen: RunVersions | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class TeamWatcher:
    """Changes of a team's runs, for all who listen to the team. As long as somebody listens, one
    query a tenth of a second looks at the team's unfinished runs and at those that ended a moment
    ago. A listener compares the state with the one before: a slow one is told less often, and
    nothing is kept for it.
    """

    def __init__(self) -> None:
        self._teams: dict[str, _WatchedTeam] = {}
        self._listening: Counter[str] = Counter()
        self._some = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with run_in_background(self._look()):
            yield

    async def changes(
        self, team: str, records: Records, pause: Callable[[], float], *, recent: bool = False
    ) -> AsyncIterator[dict[str, RunVersion]]:
        """The runs that have changed since the last time; none after so many seconds without any as
        `pause` says then. `records` are those of the team. `recent`: first all runs that are looked
        at.
        """
        here = self._teams.setdefault(team, _WatchedTeam(records))
        self._listening[team] += 1
        self._some.set()
        before = {} if recent else here.seen
        try:
            while True:
                now = here.seen
                if now is None or now is before:
                    try:
                        await asyncio.wait_for(here.changed.wait(), pause())
                    except TimeoutError:
                        yield {}
                    continue
                known = now if before is None else before  # when nobody listened, none was seen
                before = now
                if found := {name: run for name, run in now.items() if known.get(name) != run}:
                    yield found
        finally:
            self._listening[team] -= 1
            if not self._listening[team]:
                del self._listening[team], self._teams[team]

    async def _look(self) -> None:
        while True:
            if not self._teams:
                self._some.clear()
            await self._some.wait()
            for team in list(self._teams.values()):
                try:
                    seen = await asyncio.to_thread(_read_versions, team.records)
                except sa.exc.SQLAlchemyError as error:
                    log.warning("the record is away", error=type(error).__name__)
                    continue
                if seen != team.seen:
                    team.seen = seen
                    team.changed.set()
                    team.changed = asyncio.Event()
            await asyncio.sleep(PERIOD)


def _read_versions(records: Records) -> RunVersions:
    newest = runs.c.created_at.desc()
    unfinished = sa.select(*_VERSION_COLUMNS).where(runs.c.finished_at.is_(None)).order_by(newest)
    since = time.time() - RECENT_SECONDS
    ended = sa.select(*_VERSION_COLUMNS).where(runs.c.finished_at > since).order_by(newest)
    with records.reading() as connection:
        rows = [
            *connection.execute(unfinished.limit(MOST_WATCHED)),
            *connection.execute(ended.limit(MOST_WATCHED)),
        ]
    return {row.id: (row.kind, row.version, row.status) for row in rows}


@asynccontextmanager
async def run_in_background(coroutine: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a coroutine in the background until the end of the block."""
    task = asyncio.create_task(coroutine)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
