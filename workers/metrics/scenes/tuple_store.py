"""A cache of tuples on this machine, by the content of their caption. It skips what it cannot read
or write, a damaged one starts anew, and to lose it costs only time.
"""

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from workers.metrics.scenes.scene_graphs import Tuples

T = TypeVar("T")

_TABLE = "CREATE TABLE IF NOT EXISTS tuples (key BLOB PRIMARY KEY, tuples TEXT) WITHOUT ROWID"
_VARIABLES = 900  # SQLite takes at least 999 in a statement
_WAIT = 5.0  # seconds for another worker's write


class TupleStore:
    """The cache in a file. `parser` is part of every key: another parser finds other tuples."""

    def __init__(self, path: Path, parser: str) -> None:
        self._path = path
        self._parser = parser

    def get(self, captions: Sequence[str]) -> dict[str, Tuples]:
        """The tuples of those captions that are in the cache."""
        keys = {self._key(caption): caption for caption in captions}
        found = self._use(lambda connection: list(_select(connection, list(keys))))
        return {keys[key]: json.loads(tuples) for key, tuples in found or ()}

    def put(self, parsed: Mapping[str, Tuples]) -> None:
        rows = [(self._key(caption), json.dumps(tuples)) for caption, tuples in parsed.items()]
        insert = "INSERT OR REPLACE INTO tuples VALUES (?, ?)"
        self._use(lambda connection: connection.executemany(insert, rows))

    def _key(self, caption: str) -> bytes:
        return hashlib.sha256(f"{self._parser}\n{caption}".encode()).digest()

    def _use(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self._path, timeout=_WAIT)) as connection:
                connection.execute("PRAGMA synchronous = OFF")
                with connection:
                    connection.execute(_TABLE)
                    return action(connection)
        except (sqlite3.OperationalError, OSError):  # busy, full, not writable
            return None
        except sqlite3.DatabaseError:  # not a database any more
            with contextlib.suppress(OSError):
                self._path.unlink()
            return None


def _select(connection: sqlite3.Connection, keys: Sequence[bytes]) -> Iterator[tuple[bytes, str]]:
    for start in range(0, len(keys), _VARIABLES):
        some = keys[start : start + _VARIABLES]
        marks = ",".join("?" * len(some))
        yield from connection.execute(
            f"SELECT key, tuples FROM tuples WHERE key IN ({marks})",  # noqa: S608  question marks
            some,
        )
