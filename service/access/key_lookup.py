"""Key lookup for requests: one statement each, as quick as the database can be asked.

From a SQLite file it is read over a connection of its own, without a transaction around it: a
twentieth of the time that the record's usual way takes, which would be a sixth of a poll.
"""

import hmac
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from sqlalchemy.engine import Connection

from service.access import keys
from service.access.keys import KeyRecord
from service.contract.api.field_types import rfc3339_or_none
from service.engine.records import Records

T = TypeVar("T")
_COLUMNS = tuple(KeyRecord.__dataclass_fields__)
_BY_ID = f"SELECT {', '.join(_COLUMNS)}, hash FROM keys WHERE id = ?"  # noqa: S608  our own names
_ANY = "SELECT 1 FROM keys LIMIT 1"


class InvalidKey(Exception):
    """Reason why a key is not valid; `key` is its id, if it has the form of one. A sender without
    the secret cannot see whether a key exists: an unknown key and a wrong secret are one reason.
    """

    def __init__(self, key: str | None, why: str) -> None:
        super().__init__(why)
        self.key = key


def find_valid_key(
    given: str, find: Callable[[str], tuple[KeyRecord, str] | None], now: float
) -> KeyRecord:
    """The key of this text, which `find` looks up by its id. Raises NotValid."""
    read = keys.parse_key_text(given[: keys.LONGEST_KEY_TEXT + 1])
    if read is None:
        raise InvalidKey(None, "is mistyped or cut off")
    found = find(read.id)
    if found is None or not hmac.compare_digest(found[1], read.hash):
        raise InvalidKey(read.id, "is not known")
    key = found[0]
    if ended := key.ended_by(now):
        at = rfc3339_or_none(key.revoked_at or key.expires_at)
        raise InvalidKey(read.id, f"{ended} ({at})")
    return key


class KeyLookup:
    """Lookup of keys in the record; one object serves one thread if the record is a file."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._kept: sqlite3.Connection | None = None

    def find(self, identity: str) -> tuple[KeyRecord, str] | None:
        """A key, valid or not, and the hash of its text."""
        return self._ask(
            lambda: _read(self._one(_BY_ID, identity)),
            lambda connection: keys.find_key_and_hash(connection, identity),
        )

    def are_there(self) -> bool:
        """True if a key was ever made."""
        return self._ask(lambda: self._one(_ANY) is not None, keys.has_keys)

    def _ask(self, of_file: Callable[[], T], usually: Callable[[Connection], T]) -> T:
        if self._records.is_file:
            try:
                return of_file()
            except sqlite3.Error:
                self._close()
        with self._records.reading() as connection:
            return usually(connection)

    def _one(self, statement: str, *values: str) -> tuple[object, ...] | None:
        if self._kept is None:
            path = self._records.engine.url.database
            assert path is not None
            self._kept = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        with closing(self._kept.execute(statement, values)) as cursor:
            row: tuple[object, ...] | None = cursor.fetchone()
            return row

    def _close(self) -> None:
        """Close the file: the usual way reports the error, and the next request opens the file
        again.
        """
        if self._kept is not None:
            self._kept.close()
            self._kept = None


def _read(row: tuple[object, ...] | None) -> tuple[KeyRecord, str] | None:
    if row is None:
        return None
    *values, text = row
    return keys.build_key(dict(zip(_COLUMNS, values, strict=True))), str(text)
