"""Roles of a fleet's pieces on a real PostgreSQL, which all databases of the server share."""

import contextlib
import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa

from service.engine.database_roles import ROLES

PASSWORD = "tester"


@contextlib.contextmanager
def made(engine: sa.Engine) -> Iterator[dict[str, str]]:
    """The URL of each role, by its name; skips the test where the server has such roles already.
    One test at a time has them.
    """
    with ExitStack() as held:
        lock = held.enter_context((Path(tempfile.gettempdir()) / "prescore-roles.lock").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _made(engine) as urls:
            yield urls


@contextlib.contextmanager
def _made(engine: sa.Engine) -> Iterator[dict[str, str]]:
    with engine.begin() as connection:
        query = sa.text("SELECT count(*) FROM pg_roles WHERE rolname = ANY(:names)")
        if connection.execute(query, {"names": [*ROLES]}).scalar_one():
            pytest.skip("this PostgreSQL has roles of a fleet already")
        for role in ROLES:
            connection.exec_driver_sql(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    try:
        yield {
            role: engine.url.set(username=role, password=PASSWORD)
            .render_as_string(hide_password=False)
            .replace("postgresql+psycopg", "postgresql")
            for role in ROLES
        }
    finally:
        with engine.begin() as connection:
            for role in ROLES:
                connection.exec_driver_sql(f"DROP OWNED BY {role}")
                connection.exec_driver_sql(f"DROP ROLE {role}")
