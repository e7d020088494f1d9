"""What can be pruned, and which processes are at work."""

import sqlalchemy as sa
from alembic import op

from index.store import tables

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_DIGESTS = (
    ("documents", "digest"),
    ("documents", "applied_digest"),
    ("artifacts", "digest"),
    ("versions", "digest"),
    ("drifts", "catalog_digest"),
    ("drifts", "live_digest"),
)


def upgrade() -> None:
    op.create_table(
        "released",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("at", tables.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_released")),
    )
    op.create_index(op.f("ix_released_at"), "released", ["at"], unique=False)
    op.create_table(
        "processes",
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("origins_digest", sa.String(length=64), nullable=False),
        sa.Column("started_at", tables.UtcDateTime(), nullable=False),
        sa.Column("seen_at", tables.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_processes")),
    )
    for table, column in _DIGESTS:
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column], unique=False)


def downgrade() -> None:
    for table, column in reversed(_DIGESTS):
        op.drop_index(op.f(f"ix_{table}_{column}"), table_name=table)
    for table in ("processes", "released"):
        op.drop_table(table)
