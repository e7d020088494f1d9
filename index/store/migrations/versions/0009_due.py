"""Find due origins by their time alone.

With `active` in front of it, SQLite took the index for every statement that names a few origins and asks whether they
are active, and went through all of them.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_origins_next_visit_at_id", "origins", ["next_visit_at", "id"])
    op.drop_index("ix_origins_active_next_visit_at", "origins")


def downgrade() -> None:
    op.create_index("ix_origins_active_next_visit_at", "origins", ["active", "next_visit_at"])
    op.drop_index("ix_origins_next_visit_at_id", "origins")
