"""The milder pace of origins that answered 429."""

import sqlalchemy as sa
from alembic import op

from index.store import tables

revision = "0008"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("origins", sa.Column("slowdown", sa.Float(), nullable=True))
    op.add_column("origins", sa.Column("slow_until", tables.UtcDateTime(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("origins") as batch:
        batch.drop_column("slow_until")
        batch.drop_column("slowdown")
