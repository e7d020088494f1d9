"""What is believed about how often a document changes."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("rate_a", sa.Float(), nullable=True))
    op.add_column("documents", sa.Column("rate_b", sa.Float(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("documents") as batch:
        batch.drop_column("rate_b")
        batch.drop_column("rate_a")
