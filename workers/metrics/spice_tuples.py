"""SPICE's tuples of captions, and their cache by a caption's content. It skips what it cannot read
or write, a damaged one starts anew, and to lose it costs only time.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from service.contract import assets
from service.contract.assets import AssetFolders
from service.contract.errors import MetricFailed
from service.contract.formats.outputs import LONGEST_PARSED
from workers import files
from workers.metrics.java.jvm import Jvm
from workers.metrics.scene_graphs import Tuples
from workers.progress import Progress, ignore_progress

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


JAVA = "spice"  # the kind of Java that parses
PARSER = "spice1.0+corenlp3.6.0"  # what tuples depend on besides their caption

_CORES = os.cpu_count() or 1
_BATCH = 10 * _CORES  # captions in one request: half a second, unless they are very long
_HEAP_MB, _HEAP_MB_PER_CORE = 768, 64
_START_SECONDS = 60.0  # Java reads its grammar in 1.5 s, on a busy machine in 20 s
_SECONDS_PER_CUBIC_WORD = 1.5e-4  # ten times what was measured
_FORMAT = 1


class TupleParser:
    """A parser in Java; `store` keeps tuples."""

    def __init__(self, jvm: Jvm, store: TupleStore | None = None) -> None:
        self._jvm = jvm
        self._store = store

    @property
    def pid(self) -> int | None:
        """The id of Java's process; None before it is started."""
        return self._jvm.pid

    def parse(
        self, captions: Sequence[str], *, progress: Progress = ignore_progress
    ) -> dict[str, Tuples]:
        """Tuples of captions (tokens). Java starts only for captions that nobody has parsed."""
        texts = {caption: clip_caption(caption) for caption in captions}
        distinct = list(dict.fromkeys(texts.values()))
        found = self._store.get(distinct) if self._store else {}
        unknown = sorted((text for text in distinct if text not in found), key=len)

        def as_before(_done: int, _total: int) -> None:
            progress(len(found), len(distinct))

        progress(len(found), len(distinct))
        for start in range(0, len(unknown), _BATCH):
            batch = unknown[start : start + _BATCH]
            answers = self._jvm.call("tuples", batch, deadline=_deadline(batch), progress=as_before)
            parsed = dict(zip(batch, answers, strict=True))
            if self._store:
                self._store.put(parsed)
            found |= parsed
            progress(len(found), len(distinct))
        return {caption: found[text] for caption, text in texts.items()}

    def close(self) -> None:
        self._jvm.close()


def open_parser(places: AssetFolders, *, remember: bool = True) -> TupleParser:
    """A parser from what `prescore assets` added. Raises MetricUnavailable if that is missing."""
    store = TupleStore(places.home / "cache" / "tuples.sqlite", PARSER) if remember else None
    return TupleParser(make_jvm(find_jars(places)), store)


def find_jars(places: AssetFolders) -> list[Path]:
    """CoreNLP and its grammar. Raises MetricUnavailable if one is missing."""
    return [assets.locate_asset(name, places).path for name in ("corenlp", "corenlp-grammar")]


def make_jvm(jars: Sequence[Path]) -> Jvm:
    return Jvm(JAVA, heap=f"{_HEAP_MB + _HEAP_MB_PER_CORE * _CORES}m", jars=jars)


def clip_caption(caption: str) -> str:
    """The part of a caption that is parsed: its first words, in characters that Java accepts."""
    return " ".join(caption.split()[:LONGEST_PARSED]).encode("utf-8", "replace").decode("utf-8")


def write_tuples(path: Path, tuples: Mapping[str, Tuples]) -> None:
    """Write the tuples by caption as one JSON file."""
    content = {"prescore_tuples": _FORMAT, "parser": PARSER, "tuples": tuples}
    text = json.dumps(content)
    files.write_atomically(path, lambda partial: partial.write_text(text, "utf-8"))


def read_tuples(path: Path) -> dict[str, Tuples]:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["prescore_tuples"] != _FORMAT or content["parser"] != PARSER:
            raise MetricFailed(f"expected tuples of {PARSER} in {path.name}")
        found: dict[str, Tuples] = content["tuples"]
    except (ValueError, KeyError, TypeError) as error:
        raise MetricFailed(f"{path.name} is not a file of tuples: {error}") from None
    return found


def _deadline(batch: Sequence[str]) -> float:
    words = (len(text.split()) for text in batch)
    return _START_SECONDS + _SECONDS_PER_CUBIC_WORD * sum(count**3 for count in words)
