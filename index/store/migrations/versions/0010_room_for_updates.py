"""Leave room on the pages of what every visit updates, on PostgreSQL.

A new version of a row that finds room beside the old one needs no new lines in the indexes of its table, as long as no
column of theirs has changed: so it is with a document that was found unchanged, and with an origin that is claimed.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_TABLES = ("origins", "documents")


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in _TABLES:
            op.execute(f"ALTER TABLE {table} SET (fillfactor = 80)")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in _TABLES:
            op.execute(f"ALTER TABLE {table} RESET (fillfactor)")
