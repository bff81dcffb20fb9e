"""The golden home: a backup of it, and the exchanges with the service that filled it."""

import contextlib
import functools
import json
import lzma
import os
import platform
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from service.contract.settings import Settings
from service.engine import database
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.operate.backups import archive, creation, restoration
from service.operate.backups.archive import BackupObject, BackupRows

FOLDER = Path(__file__).resolve().parent
BACKUP = FOLDER / "home.tar.xz"  # by `prescore backup`, and compressed
EXCHANGES = FOLDER / "exchanges.json.xz"
ASSETS = ("assets", "encoder")  # folders of a home that no backup has
_HOME = "{home}"


@functools.cache
def exchanges() -> dict[str, Any]:
    """`made_on`; `posts` and `answers`: requests with their answers; `assets`: texts by file."""
    return json.loads(lzma.decompress(EXCHANGES.read_bytes()))


def write_exchanges(**members: Any) -> None:
    EXCHANGES.write_bytes(lzma.compress(json.dumps(members).encode(), preset=9))


def make_backup(home: Path, backup: Path) -> None:
    settings = Settings(home=home)
    engine = database.open_database(settings.database)
    blobs = open_blobs(settings.blob_url, settings.home, copying=False)
    made = creation.make_backup(Records(engine), blobs, backup, lambda *_: None)
    engine.dispose()
    assert not made.lacking


def write_backup(backup: Path) -> None:
    BACKUP.write_bytes(lzma.compress(backup.read_bytes(), preset=9))


@contextlib.contextmanager
def unpacked_backup() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "home.tar"
        path.write_bytes(lzma.decompress(BACKUP.read_bytes()))
        yield path


def restore(home: Path, url: str | None = None) -> None:
    """Restore it into an empty folder and, where one is named, an empty database."""
    with unpacked_backup() as backup:
        restoration.restore_backup(backup, Settings(home=home, database_url=url), lambda *_: None)
    restore_assets(home)


def restore_assets(home: Path) -> None:
    """Write the files that were registered as word vectors and as a language model."""
    for name, text in exchanges()["assets"].items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1").replace(_HOME.encode(), str(home).encode()))


def read_assets(home: Path) -> dict[str, str]:
    files = (file for folder in ASSETS for file in sorted((home / folder).rglob("*")))
    return {
        file.relative_to(home).as_posix(): file.read_bytes()
        .replace(str(home).encode(), _HOME.encode())
        .decode("latin-1")
        for file in files
        if file.is_file()
    }


@functools.cache
def objects() -> Mapping[str, bytes]:
    """Content of the golden home's objects, by digest."""
    with unpacked_backup() as backup:
        members = archive.read_backup(backup)
        return {
            each.digest: b"".join(each.content)
            for each in members
            if isinstance(each, BackupObject)
        }


def read_tasks(backup: Path) -> list[dict[str, Any]]:
    """Rows of the table of tasks in a backup."""
    parts = [each for each in archive.read_backup(backup) if isinstance(each, BackupRows)]
    return [
        dict(zip(part.columns, row, strict=True))
        for part in parts
        if part.table == "tasks"
        for row in part.rows
    ]


def keys_by_kind(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[row["kind"]].append(row["key"])
    return {kind: sorted(keys) for kind, keys in sorted(found.items())}


def results_by_key(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {row["key"]: row["result"] for row in rows if row["result"] is not None}


def kind_of_machine() -> dict[str, str]:
    """On a machine of another kind, the last bits of scores differ."""
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
