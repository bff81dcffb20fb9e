"""What changes among a team's runs, for all who listen to the team.

As long as somebody listens, one query a tenth of a second looks at the team's unfinished runs and
at those that ended a moment ago. Who listens compares what was with what is: a slow listener is
told less often, and nothing is kept for it.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import sqlalchemy as sa
import structlog

from service.engine.records import Records
from service.engine.tables import runs
from service.http import background

log = structlog.get_logger()

PERIOD = 0.1
_MOST = 500  # unfinished runs, and ended ones, that are looked at: the newest
_ENDED = 30.0  # seconds for which an ended run is looked at
_STATE = (runs.c.id, runs.c.kind, runs.c.version, runs.c.status)

Run = tuple[str, int, str]  # its kind, version and status
Seen = Mapping[str, Run]


@dataclass
class _Team:
    records: Records
    seen: Seen | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Teams:
    def __init__(self) -> None:
        self._teams: dict[str, _Team] = {}
        self._listening: Counter[str] = Counter()
        self._some = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with background.running(self._look()):
            yield

    async def changes(
        self, team: str, records: Records, pause: Callable[[], float]
    ) -> AsyncIterator[dict[str, Run]]:
        """The runs that have changed since the last time; none after so many seconds without any as
        `pause` says then. `records` are those of the team.
        """
        here = self._teams.setdefault(team, _Team(records))
        self._listening[team] += 1
        self._some.set()
        before = here.seen
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
                    seen = await asyncio.to_thread(_state, team.records)
                except sa.exc.SQLAlchemyError as error:
                    log.warning("the record is away", error=type(error).__name__)
                    continue
                if seen != team.seen:
                    team.seen = seen
                    team.changed.set()
                    team.changed = asyncio.Event()
            await asyncio.sleep(PERIOD)


def _state(records: Records) -> Seen:
    newest = runs.c.created_at.desc()
    unfinished = sa.select(*_STATE).where(runs.c.finished_at.is_(None)).order_by(newest)
    since = time.time() - _ENDED
    ended = sa.select(*_STATE).where(runs.c.finished_at > since).order_by(newest)
    with records.reading() as connection:
        rows = [
            *connection.execute(unfinished.limit(_MOST)),
            *connection.execute(ended.limit(_MOST)),
        ]
    return {row.id: (row.kind, row.version, row.status) for row in rows}
