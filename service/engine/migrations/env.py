"""Alembic's entry: runs on the connection that service.engine.database gives it."""

from alembic import context

from service.engine.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
context.run_migrations()
