"""The schema that this version expects, and the way there.

Alembic is loaded only where there is something to migrate, for it is a good part of what it takes to start a command.
"""

from importlib.resources import files
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0010"
_MIGRATION_LOCK = 7_239_004_511


class UnknownRevision(Exception):
    """The schema is at a revision that this version doesn't know."""


def current_revision(connection: Connection) -> str | None:
    """Give the revision of the schema; None when there is none yet."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def upgrade_schema(connection: Connection) -> tuple[str | None, str | None]:
    """Bring the schema to its head; gives the revisions before and after, and raises UnknownRevision."""
    from alembic import command
    from alembic.util import CommandError

    if connection.dialect.name == "postgresql":
        # Two processes that start at once must not create the tables twice.
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
    before = current_revision(connection)
    config = _config()
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise UnknownRevision(before) from error
    return before, current_revision(connection)


def known_revisions() -> set[str]:
    """Name the revisions that this version can bring to its head."""
    from alembic.script import ScriptDirectory

    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(files("index.store") / "migrations"))
    return config
