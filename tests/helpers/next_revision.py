"""A later version of the record, for tests of migrations: one revision after the last one."""

import shutil
from pathlib import Path

from service.engine import database

REVISION = "9998"
_MIGRATION = '''"""a column more"""

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{last}"


def upgrade():
    op.add_column("runs", sa.Column("added_later", sa.Text))
'''


def add(folder: Path, last: str, monkeypatch) -> None:
    """From now on, this version's record has a column more than that of the revision `last`."""
    shutil.copytree(database._MIGRATIONS, folder)
    text = _MIGRATION.format(revision=REVISION, last=last)
    (folder / "versions" / f"{REVISION}_a_column_more.py").write_text(text, "utf-8")
    monkeypatch.setattr(database, "_MIGRATIONS", folder)
