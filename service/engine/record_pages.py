"""Pages of SQLite's file, all of which are looked at again and again while somebody asks.

A look reads the whole file beside other work, about 100 MB a second. It begins when the one before
ended long ago, measured by the time that one took.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from threading import Lock, Thread

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from service.engine import database

_SHARE = 20.0  # between two looks passes so many times as long as a look took
_LEAST_SECONDS = 5.0
_WAIT_SECONDS = 0.5  # for a look to end; then the findings of the one before are told


class RecordPages:
    """The damage of SQLite's file, found in the background. Several threads may ask."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = Lock()
        self._looking: Future[None] | None = None
        self._due = 0.0
        self._findings: Sequence[str] = ()

    def findings(self) -> Sequence[str]:
        """The damage that the last look found; empty for a sound file and for PostgreSQL."""
        if self._engine.dialect.name != "sqlite":
            return ()
        with self._lock:
            if self._looking is None and time.monotonic() >= self._due:
                self._looking = Future()
                Thread(target=self._look, args=(self._looking,), daemon=True).start()
            looking = self._looking
        if looking is not None:
            with suppress(TooLate):
                looking.result(_WAIT_SECONDS)
        return self._findings

    def _look(self, looking: "Future[None]") -> None:
        began = time.monotonic()
        try:
            found = database.damage(self._engine, quick=True)
        except sa.exc.DatabaseError as error:
            found = [str(error.orig)]
        with self._lock:
            self._findings, self._looking = found, None
            ended = time.monotonic()
            self._due = ended + max(_LEAST_SECONDS, _SHARE * (ended - began))
        looking.set_result(None)
