"""Rights of the pieces of a fleet on a real PostgreSQL."""

import psycopg
import pytest
import sqlalchemy as sa

from helpers import postgresql_roles
from service.engine import database, database_roles
from service.engine.tables import metadata


@pytest.fixture
def roles(postgres_record):
    """The URL of each role on a record, whose owner has given them their rights."""
    with postgresql_roles.made(postgres_record) as urls:
        assert database_roles.grant_rights(postgres_record) == sorted(database_roles.ROLES)
        yield urls


def _may(url, statement):
    engine = database.open_database(url)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)
    except sa.exc.ProgrammingError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise
        return False
    finally:
        engine.dispose()
    return True


@pytest.mark.parametrize("role", database_roles.ROLES)
def test_a_role_has_the_tables_that_it_needs_and_no_others(roles, role):
    url = roles[role]
    for table in metadata.tables:
        is_allowed = table not in database_roles.ROLES[role]
        for statement in ("SELECT * FROM", "DELETE FROM"):
            assert _may(url, f"{statement} {table}") is is_allowed, (role, statement, table)
    assert _may(url, "SELECT version_num FROM alembic_version")
    assert _may(url, "SELECT team, disabled_because FROM webhooks")
    assert _may(url, "SELECT secret FROM webhooks") is (role != "prescore_worker")
    for statement in (
        "UPDATE alembic_version SET version_num = '0'",
        "ALTER TABLE keys ADD COLUMN x int",
        "DROP TABLE tasks",
        "CREATE ROLE prescore_other SUPERUSER",
        "COPY (SELECT 1) TO PROGRAM 'true'",
    ):
        assert not _may(url, statement), statement


def test_where_there_are_no_roles_nothing_is_given(on_either):
    assert database_roles.grant_rights(on_either.engine) == []
