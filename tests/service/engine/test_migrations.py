"""The migrations of the record, on either database."""

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from helpers import outside, stored_records
from service.contract.errors import InvalidSetting
from service.engine import database
from service.engine.tables import metadata, outbox


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request, tmp_path):
    """A database without tables."""
    if request.param == "sqlite":
        engine = database.open_database(f"sqlite:///{tmp_path / 'record.sqlite'}")
        yield engine
        engine.dispose()
        return
    with outside.or_skip(outside.postgres_database()) as url:
        engine = database.open_database(url)
        yield engine
        engine.dispose()


@pytest.mark.long
def test_migrations_make_the_tables_that_the_code_knows(empty):
    database.migrate_database(empty)
    with empty.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


@pytest.mark.long
def test_a_record_of_an_earlier_version_is_refused_until_it_is_migrated_and_keeps_its_rows(
    empty, tmp_path, monkeypatch
):
    database.migrate_database(empty)
    row = {"id": 7, "task_key": "k", "queue": "metrics"}
    with empty.begin() as connection:
        connection.execute(outbox.insert().values(**row))
    last, _ = database.read_revisions(empty)
    stored_records.add_revision(tmp_path / "migrations", last, monkeypatch)
    with pytest.raises(
        InvalidSetting, match=f"at revision {last}, this version needs {stored_records.REVISION}"
    ):
        database.check_revision(empty)
    database.migrate_database(empty)
    database.check_revision(empty)
    assert "added_later" in {column["name"] for column in sa.inspect(empty).get_columns("runs")}
    with empty.connect() as connection:
        assert [dict(found._mapping) for found in connection.execute(sa.select(outbox))] == [row]


def test_every_migration_is_known_by_its_files_name():
    configuration = Config()
    configuration.set_main_option("script_location", str(database._MIGRATIONS))
    scripts = ScriptDirectory.from_config(configuration)
    assert [script.revision for script in scripts.walk_revisions()][::-1] == database._known()
