"""Roles of PostgreSQL: what each piece of a fleet may do with the record. The owner, who migrates,
has all rights; the pieces have none on the form of tables. Workers perform what others send: they
neither read nor write keys and what the service sends to others.

The operator makes the roles (`deploy/secrets.sh`); those that are not there get nothing.
"""

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from service.engine.tables import metadata

# Role -> tables on which it has no rights.
ROLES: Mapping[str, frozenset[str]] = {
    "prescore_api": frozenset(),
    "prescore_janitor": frozenset(),
    "prescore_worker": frozenset(
        {"audit", "deliveries", "idempotency", "keys", "oidc_tokens", "uploads", "webhooks"}
    ),
}
# Role -> columns that it may read of those tables: whether a team has a webhook, not its secret.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "prescore_worker": {"webhooks": "team, disabled_because"}
}


def grant_rights(engine: Engine) -> list[str]:
    """Give the roles that the server has their rights on all tables of this version, and no others;
    returns their names. Nothing happens on SQLite.
    """
    if engine.dialect.name != "postgresql":
        return []
    known = sa.text("SELECT rolname FROM pg_roles WHERE rolname = ANY(:names)")
    with engine.begin() as connection:
        found = connection.execute(known, {"names": list(ROLES)}).scalars().all()
        schema = connection.exec_driver_sql("SELECT current_schema()").scalar_one()
        for role in found:
            every = f"IN SCHEMA {schema} "
            connection.exec_driver_sql(f"REVOKE ALL ON ALL TABLES {every} FROM {role}")
            connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
            connection.exec_driver_sql(f"GRANT USAGE ON ALL SEQUENCES {every} TO {role}")
            connection.exec_driver_sql(f"GRANT SELECT ON alembic_version TO {role}")
            tables = ", ".join(sorted(metadata.tables.keys() - ROLES[role]))
            rights = "SELECT, INSERT, UPDATE, DELETE"
            connection.exec_driver_sql(f"GRANT {rights} ON {tables} TO {role}")
            for table, columns in COLUMNS.get(role, {}).items():
                connection.exec_driver_sql(f"GRANT SELECT ({columns}) ON {table} TO {role}")
    return sorted(found)
