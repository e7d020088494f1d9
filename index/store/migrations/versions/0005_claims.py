"""Since when an origin is claimed."""

import sqlalchemy as sa
from alembic import op

from index.store.tables import UtcDateTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("origins", sa.Column("claimed_at", UtcDateTime(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("origins") as batch:
        batch.drop_column("claimed_at")
