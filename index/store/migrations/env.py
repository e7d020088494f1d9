"""Alembic's entry point; the connection comes from index.store.database."""

from alembic import context

from index.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite cannot alter most things in place; the table is then rebuilt.
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
