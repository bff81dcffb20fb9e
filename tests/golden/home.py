"""The golden files, and a home of the version that made them."""

import base64
import functools
import hashlib
import json
import lzma
import os
import platform
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
import torch
from alembic import command

from service.works import database

FOLDER = Path(__file__).resolve().parent
LONG = 300  # characters: a longer text is packed
_HOME = "{home}"


@functools.cache
def read(name: str) -> Any:
    """A golden file, unpacked; not to be changed."""
    found = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return Pool(found["texts"]).get(found) if "texts" in found else found


@functools.cache
def blobs() -> dict[str, bytes]:
    return {digest: unpack(text) for digest, text in read("blobs").items()}


def kind_of_machine() -> dict[str, str]:
    """On another one, the last bits of scores are others."""
    return {
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "model": _model_of_cpu(),  # of two with the same capability, libraries choose other kernels
        **{name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")},
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def _model_of_cpu() -> str:
    """As Linux names it; empty elsewhere."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model"))
    return " ".join(sorted(set(named)))


def restore(home: Path, url: str | None = None) -> None:
    """On SQLite at home, or on an empty database."""
    home.mkdir(parents=True, exist_ok=True)
    engine = _record_at(home) if url is None else database.connect(url)
    restore_record(engine)
    engine.dispose()
    for digest, data in blobs().items():
        name = digest.removeprefix("sha256:")
        _write(home / "blobs" / "objects" / name[:2] / name[2:], data)
    restore_assets(home)


def restore_assets(home: Path) -> None:
    """What was registered there, and where it lay."""
    for name, text in read("record")["files"].items():
        data = base64.urlsafe_b64decode(text)
        _write(home / name, data.replace(_HOME.encode(), str(home).encode()))


def files_of(home: Path, folders: tuple[str, ...]) -> dict[str, str]:
    """The reverse: text by name."""
    found = {}
    for file in (file for folder in folders for file in sorted((home / folder).rglob("*"))):
        if file.is_file():
            data = file.read_bytes().replace(str(home).encode(), _HOME.encode())
            found[file.relative_to(home).as_posix()] = base64.urlsafe_b64encode(data).decode()
    return found


def rows_at(home: Path) -> dict[str, Any]:
    """The whole record of a home: its revision, and its tables."""
    engine = _record_at(home)
    tables = _tables(engine)
    with engine.connect() as connection:
        version = sa.select(tables.pop("alembic_version"))
        revision = connection.execute(version).scalar_one()
        found = {
            name: {
                "columns": table.columns.keys(),
                "rows": [list(row) for row in connection.execute(_ordered(table))],
            }
            for name, table in tables.items()
        }
    engine.dispose()
    return {"revision": revision, "tables": found}


def keys_of(record: dict[str, Any]) -> dict[str, list[str]]:
    """Of all works, by kind."""
    found: dict[str, list[str]] = defaultdict(list)
    columns, rows = record["tables"]["works"].values()
    for row in rows:
        work = dict(zip(columns, row, strict=True))
        found[work["kind"]].append(work["key"])
    return {kind: sorted(keys) for kind, keys in sorted(found.items())}


def _record_at(home: Path) -> sa.Engine:
    return database.connect(f"sqlite:///{home / 'record.sqlite'}")


def _ordered(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table).order_by(*table.primary_key)


def _tables(engine: sa.Engine) -> dict[str, sa.Table]:
    metadata = sa.MetaData()
    metadata.reflect(engine)
    return dict(metadata.tables)


def restore_record(engine: sa.Engine) -> None:
    record = read("record")
    with engine.begin() as connection:
        configuration = database._configuration()
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, record["revision"])
    tables = _tables(engine)
    with engine.begin() as connection:
        for name, found in record["tables"].items():
            if found["rows"]:
                values = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
                connection.execute(tables[name].insert(), values)
            if engine.dialect.name == "postgresql" and "id" in tables[name].c:
                _set_sequence(connection, tables[name])


def _set_sequence(connection: sa.Connection, table: sa.Table) -> None:
    """So that new rows get numbers that are free."""
    if isinstance(table.c.id.type, sa.Integer):
        place = sa.func.pg_get_serial_sequence(table.name, "id")
        last = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 1)).scalar_subquery()
        connection.execute(sa.select(sa.func.setval(place, last)))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# How it is kept: long texts and blobs packed, without slashes, so that nothing looks like a path.


def pack(data: bytes) -> str:
    return base64.urlsafe_b64encode(lzma.compress(data, preset=9)).decode()


def unpack(text: str) -> bytes:
    return lzma.decompress(base64.urlsafe_b64decode(text))


class Pool:
    """Texts that are packed together: much of one stands in another. A value has {"$text": n} or
    {"$json": n} in their place.
    """

    def __init__(self, packed: str | None = None) -> None:
        self._texts: list[str] = [] if packed is None else json.loads(unpack(packed))

    def put(self, value: Any, bodies: tuple[str, ...] = ()) -> Any:
        """Its long texts, and its long members of these names."""
        if isinstance(value, str):
            return {"$text": self._place(value)} if len(value) > LONG else value
        if isinstance(value, list):
            return [self.put(each, bodies) for each in value]
        if isinstance(value, dict):
            return {
                name: self._body(each) if name in bodies else self.put(each, bodies)
                for name, each in value.items()
            }
        return value

    def get(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.get(each) for each in value]
        if isinstance(value, dict):
            match value:
                case {"$text": place}:
                    return self._texts[place]
                case {"$json": place}:
                    return json.loads(self._texts[place])
            return {name: self.get(each) for name, each in value.items()}
        return value

    @property
    def packed(self) -> str:
        return pack(json.dumps(self._texts).encode())

    def _body(self, value: Any) -> Any:
        text = json.dumps(value, ensure_ascii=False)
        return {"$json": self._place(text)} if len(text) > LONG else value

    def _place(self, text: str) -> int:
        if text not in self._texts:
            self._texts.append(text)
        return self._texts.index(text)


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
