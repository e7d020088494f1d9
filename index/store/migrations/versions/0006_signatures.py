"""What became of the signatures of cards, and with which keys."""

import sqlalchemy as sa
from alembic import op

from index.store import tables

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("signers", tables.JsonText(), nullable=True))
    op.add_column("artifacts", sa.Column("signatures", tables.JsonText(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("artifacts") as batch:
        batch.drop_column("signatures")
    with op.batch_alter_table("documents") as batch:
        batch.drop_column("signers")
