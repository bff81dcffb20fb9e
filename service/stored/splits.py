"""Splits: a dataset's images in a file that is read by place and by name, a page at a time.

Made of captions.jsonl where the dataset is judged, and made again wherever it is missing: it is
derived, and may be deleted at any time. SQLite, opened for reading only.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, overload

from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem

FORMAT = "1"  # of these files: another one is another file
_BLOCK = 256  # images that are read together
_ROWS = 10_000  # inserted together
_SPLIT = 1 << 32  # keys: the split's number times this, plus the image's place
_TABLES = """
    PRAGMA journal_mode=OFF;
    PRAGMA synchronous=OFF;
    PRAGMA cache_size=-65536;
    CREATE TABLE splits (number INTEGER PRIMARY KEY, name TEXT, images INTEGER);
    CREATE TABLE images (key INTEGER PRIMARY KEY, image TEXT, id TEXT, people TEXT);
    CREATE TABLE names (name TEXT, key INTEGER);
"""


class SplitWriter:
    """Writes the images that it is told of (`bundles.Names`); `end` makes the file complete."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(_TABLES + "BEGIN;")
        self._numbers: dict[str, int] = {}
        self._images: list[int] = []  # of each split so far
        self._rows: list[tuple[int, str, str | None, str]] = []

    def add(self, number: int, item: BundleItem) -> None:  # noqa: ARG002
        """Write an image, but not look whether its name is taken: `end` does, for all at once."""
        split = self._numbers.setdefault(item.split, len(self._numbers))
        if split == len(self._images):
            self._images.append(0)
        key = split * _SPLIT + self._images[split]
        self._images[split] += 1
        people = json.dumps(item.references, ensure_ascii=False)
        self._rows.append((key, item.image, item.id, people))
        if len(self._rows) == _ROWS:
            self._write()

    def end(self) -> str | None:
        """Complete the file; returns a name that two images have, if there is one."""
        self._write()
        for name, number in self._numbers.items():
            row = number, name, self._images[number]
            self._database.execute("INSERT INTO splits VALUES (?, ?, ?)", row)
        try:
            self._database.execute("CREATE UNIQUE INDEX by_name ON names (name)")
        except sqlite3.IntegrityError:
            twice = "SELECT name FROM names GROUP BY name HAVING count(*) > 1 LIMIT 1"
            return str(self._database.execute(twice).fetchone()[0])
        self._database.execute("COMMIT")
        return None

    def close(self) -> None:
        self._database.close()

    def _write(self) -> None:
        self._database.executemany("INSERT INTO images VALUES (?, ?, ?, ?)", self._rows)
        names = [(image, key) for key, image, _, _ in self._rows]
        names += [(id_, key) for key, image, id_, _ in self._rows if id_ not in (None, image)]
        self._database.executemany("INSERT INTO names VALUES (?, ?)", names)
        self._rows.clear()


def refuse_duplicate(items: Iterator[BundleItem], name: str) -> None:
    """Raise InvalidBundle at the second image that has this name."""
    first = None
    for number, item in enumerate(items, start=1):
        if name in (item.image, item.id):
            if first is not None:
                raise bundles.name_taken_error(
                    number, "image" if item.image == name else "id", name, first
                )
            first = number


class SplitItems(Sequence[BundleItem]):
    """A split's images in the bundle's order; a block of them is in memory at a time."""

    def __init__(self, path: Path, number: int, name: str, images: int) -> None:
        self._path = path
        self._first_key = number * _SPLIT
        self._name = name
        self._images = images
        self._block_at = -1
        self._block: list[BundleItem] = []

    def __len__(self) -> int:
        return self._images

    @overload
    def __getitem__(self, place: int) -> BundleItem: ...
    @overload
    def __getitem__(self, place: slice) -> list[BundleItem]: ...
    def __getitem__(self, place: int | slice) -> BundleItem | list[BundleItem]:
        if isinstance(place, slice):
            start, stop, _ = place.indices(self._images)
            return self._read(start, stop)
        if not 0 <= place < self._images:
            raise IndexError(place)
        at, within = divmod(place, _BLOCK)
        if at != self._block_at:
            self._block = self._read(at * _BLOCK, (at + 1) * _BLOCK)
            self._block_at = at
        return self._block[within]

    def names(self, places: Sequence[int]) -> Iterator[tuple[str, str | None]]:
        """Name and id of each of these images."""
        yield from self._select("image, id", places)

    def references(self, places: Sequence[int]) -> Iterator[tuple[str, ...]]:
        """The references of each of these images."""
        for (people,) in self._select("people", places):
            yield tuple(json.loads(people))

    def _select(self, columns: str, places: Sequence[int]) -> Iterator[Any]:
        for at in range(0, len(places), _BLOCK):
            keys = [self._first_key + place for place in places[at : at + _BLOCK]]
            marks = ",".join("?" * len(keys))
            query = f"SELECT key, {columns} FROM images WHERE key IN ({marks})"  # noqa: S608
            with _opened(self._path) as database:
                found = {key: tuple(values) for key, *values in database.execute(query, keys)}
            yield from (found[key] for key in keys)

    def _read(self, start: int, stop: int) -> list[BundleItem]:
        query = "SELECT image, id, people FROM images WHERE key >= ? AND key < ? ORDER BY key"
        keys = self._first_key + start, self._first_key + min(stop, self._images)
        with _opened(self._path) as database:
            rows = database.execute(query, keys).fetchall()
        return [
            BundleItem(image, self._name, tuple(json.loads(people)), id_)
            for image, id_, people in rows
        ]


class ReferenceTexts(Sequence[Sequence[str]]):
    """The references of each image."""

    def __init__(self, items: SplitItems) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> Sequence[str]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Sequence[str]]: ...
    def __getitem__(self, place: int | slice) -> Sequence[str] | Sequence[Sequence[str]]:
        if isinstance(place, slice):
            return [item.references for item in self._items[place]]
        return self._items[place].references


class ImagePlaces(Mapping[str, int]):
    """Name or id of an image -> its place in the split."""

    def __init__(self, database: sqlite3.Connection, number: int) -> None:
        self._database = database
        self._keys = number * _SPLIT, (number + 1) * _SPLIT

    def __getitem__(self, name: str) -> int:
        first, end = self._keys
        try:
            row = self._database.execute(
                "SELECT key FROM names WHERE name = ? AND key >= ? AND key < ?", (name, first, end)
            ).fetchone()
        except UnicodeEncodeError:  # a lone surrogate, which no name has
            row = None
        if row is None:
            raise KeyError(name)
        return int(row[0]) - first

    def __iter__(self) -> Iterator[str]:
        """Names of images in the split's order, then ids."""
        for column in ("image", "id"):
            query = f"SELECT {column} FROM images WHERE key >= ? AND key < ? ORDER BY key"  # noqa: S608
            for (name,) in self._database.execute(query, self._keys):
                if name is not None:
                    yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class SplitFile:
    items: SplitItems
    path: Path
    number: int

    @contextmanager
    def places(self) -> Iterator[ImagePlaces]:
        with _opened(self.path) as database:
            yield ImagePlaces(database, self.number)


def open_split(path: Path, name: str) -> SplitFile:
    """One split of a file that `Writer` has written."""
    with _opened(path) as database:
        query = "SELECT number, images FROM splits WHERE name = ?"
        found = database.execute(query, (name,)).fetchone()
        if found is None:
            known = [row[0] for row in islice(database.execute("SELECT name FROM splits"), 20)]
            raise InvalidBundle(f"expected a split named {name!r:.60}, found {', '.join(known)}")
    number, images = found
    return SplitFile(SplitItems(path, number, name, images), path, number)


def find_image(path: Path, image: str) -> tuple[str, int] | None:
    """The split in which there is an image of this name or id, and its place there."""
    with _opened(path) as database:
        try:
            query = "SELECT key FROM names WHERE name = ?"
            found = database.execute(query, (image,)).fetchone()
        except UnicodeEncodeError:  # a lone surrogate, which no name has
            found = None
        if found is None:
            return None
        number, place = divmod(found[0], _SPLIT)
        query = "SELECT name FROM splits WHERE number = ?"
        return str(database.execute(query, (number,)).fetchone()[0]), place


ESCAPE = "\\"  # of patterns of LIKE
_SCANNED = 50_000  # images, among whose names a part is sought: 5 ms


def escape_like(text: str) -> str:
    """A text as a pattern of LIKE: what means something there means itself, and a character whose
    case SQLite does not know stands for any one.
    """
    special = "".join(ESCAPE + each if each in f"%_{ESCAPE}" else each for each in text)
    return "".join(each if each.isascii() else "_" for each in special)


def search_images(path: Path, text: str, most: int) -> list[tuple[str, str, str]]:
    """Images whose name or id has the text: the name that has it, the image, and its split. Of many
    images, only those whose name begins with it.
    """
    with _opened(path) as database:
        numbers = dict(database.execute("SELECT number, name FROM splits"))
        (images,) = database.execute("SELECT sum(images) FROM splits").fetchone()
        find = _find_parts if images <= _SCANNED else _find_beginnings
        found = find(database, text, most)
        query = "SELECT image FROM images WHERE key = ?"
        return [
            (name, database.execute(query, (key,)).fetchone()[0], numbers[key // _SPLIT])
            for name, key in found
        ]


def _find_parts(database: sqlite3.Connection, text: str, most: int) -> list[tuple[str, int]]:
    pattern = escape_like(text)
    query = """
        SELECT name, key FROM names WHERE name LIKE ? ESCAPE ?
        ORDER BY name NOT LIKE ? ESCAPE ?, name NOT LIKE ? ESCAPE ?, key LIMIT ?
    """
    patterns = (f"%{pattern}%", ESCAPE, pattern, ESCAPE, f"{pattern}%", ESCAPE)
    return database.execute(query, (*patterns, most)).fetchall()


def _find_beginnings(database: sqlite3.Connection, text: str, most: int) -> list[tuple[str, int]]:
    """Names by their index, which knows no case: the text as it is, in small and in capitals."""
    query = "SELECT name, key FROM names WHERE name >= ? AND name < ? ORDER BY name LIMIT ?"
    found: dict[str, int] = {}
    for beginning in dict.fromkeys((text, text.lower(), text.upper(), text.capitalize())):
        found |= database.execute(query, (beginning, f"{beginning}\U0010ffff", most)).fetchall()
    return [*found.items()][:most]


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Opened for a moment: a connection that nobody closes stays until garbage is collected."""
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        yield database
