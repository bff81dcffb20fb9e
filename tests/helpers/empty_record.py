"""Empty records on SQLite, as copies of one: to make its tables takes longer than most tests do."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

import sqlalchemy as sa

from service.engine import database


@functools.cache
def _model() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="prescore-record-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    engine = database.open_database(f"sqlite:///{folder / 'record.sqlite'}")
    database.migrate_database(engine)
    engine.dispose()
    return folder / "record.sqlite"


def at(folder: Path) -> sa.Engine:
    """An engine on `record.sqlite` in `folder`, which is made unless it is there."""
    path = folder / "record.sqlite"
    if not path.exists():
        shutil.copyfile(_model(), path)
    return database.open_database(f"sqlite:///{path}")
