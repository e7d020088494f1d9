"""Artifacts, their older states, and drift between what two documents say."""

import sqlalchemy as sa
from alembic import op

from index.store import tables

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "drifts",
        sa.Column("id", tables.SmallId, autoincrement=True, nullable=False),
        sa.Column("name", sa.BigInteger(), nullable=False),
        sa.Column("identifier", tables.ByteString, nullable=True),
        sa.Column("publisher", tables.ByteString, nullable=False),
        sa.Column("code", sa.String(length=32), nullable=False),
        sa.Column("drift_class", sa.String(length=16), nullable=False),
        sa.Column("severity", sa.String(length=8), nullable=False),
        sa.Column("pointer", sa.Text(), nullable=False),
        sa.Column("live_pointer", sa.Text(), nullable=False),
        sa.Column("members", tables.JsonText(), nullable=False),
        sa.Column("catalog_value", tables.JsonText(), nullable=True),
        sa.Column("live_value", tables.JsonText(), nullable=True),
        sa.Column("catalog_id", sa.BigInteger(), nullable=False),
        sa.Column("live_id", sa.BigInteger(), nullable=False),
        sa.Column("catalog_document", sa.BigInteger(), nullable=False),
        sa.Column("live_document", sa.BigInteger(), nullable=False),
        sa.Column("catalog_url", sa.Text(), nullable=False),
        sa.Column("live_url", sa.Text(), nullable=False),
        sa.Column("catalog_digest", sa.String(length=64), nullable=True),
        sa.Column("live_digest", sa.String(length=64), nullable=True),
        sa.Column("opened_at", tables.UtcDateTime(), nullable=False),
        sa.Column("confirmed_at", tables.UtcDateTime(), nullable=False),
        sa.Column("closed_at", tables.UtcDateTime(), nullable=True),
        sa.Column("closed_by", sa.String(length=16), nullable=True),
        sa.Column("moved", sa.String(length=8), nullable=False),
        sa.Column("live_old_at", tables.UtcDateTime(), nullable=True),
        sa.Column("live_new_at", tables.UtcDateTime(), nullable=False),
        sa.Column("copy_old_at", tables.UtcDateTime(), nullable=False),
        sa.Column("copy_new_at", tables.UtcDateTime(), nullable=True),
        sa.Column("live_seen_at", tables.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drifts")),
    )
    op.create_index(op.f("ix_drifts_catalog_document"), "drifts", ["catalog_document"], unique=False)
    op.create_index(op.f("ix_drifts_catalog_id"), "drifts", ["catalog_id"], unique=False)
    op.create_index(op.f("ix_drifts_closed_at"), "drifts", ["closed_at"], unique=False)
    op.create_index(op.f("ix_drifts_identifier"), "drifts", ["identifier"], unique=False)
    op.create_index(op.f("ix_drifts_live_document"), "drifts", ["live_document"], unique=False)
    op.create_index(op.f("ix_drifts_live_id"), "drifts", ["live_id"], unique=False)
    op.create_index(op.f("ix_drifts_name"), "drifts", ["name"], unique=False)
    op.create_index(op.f("ix_drifts_opened_at_id"), "drifts", ["opened_at", "id"], unique=False)
    op.create_table(
        "pending",
        sa.Column("origin_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("subject", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", tables.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("origin_id", "kind", "subject", name=op.f("pk_pending")),
    )
    op.create_table(
        "versions",
        sa.Column("id", tables.SmallId, autoincrement=True, nullable=False),
        sa.Column("subject", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("identifier", tables.ByteString, nullable=True),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("first_seen_at", tables.UtcDateTime(), nullable=False),
        sa.Column("last_seen_at", tables.UtcDateTime(), nullable=False),
        sa.Column("replaced_at", tables.UtcDateTime(), nullable=False),
        sa.Column("edits", tables.JsonText(), nullable=False),
        sa.Column("change_class", sa.String(length=16), nullable=True),
        sa.Column("silent", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_versions")),
    )
    op.create_index(op.f("ix_versions_identifier"), "versions", ["identifier"], unique=False)
    op.create_index(op.f("ix_versions_subject_id"), "versions", ["subject", "id"], unique=False)
    op.create_table(
        "artifacts",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("document_id", sa.BigInteger(), nullable=False),
        sa.Column("inline", sa.Boolean(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("shape", sa.String(length=16), nullable=False),
        sa.Column("normal", tables.JsonText(), nullable=False),
        sa.Column("legacy", tables.JsonText(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("content_digest", sa.String(length=64), nullable=False),
        sa.Column("secret", sa.Boolean(), nullable=False),
        sa.Column("problems", tables.JsonText(), nullable=False),
        sa.Column("findings", tables.JsonText(), nullable=False),
        sa.Column("churn", tables.JsonText(), nullable=False),
        sa.Column("first_seen_at", tables.UtcDateTime(), nullable=False),
        sa.Column("changed_at", tables.UtcDateTime(), nullable=False),
        sa.Column("before_at", tables.UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_artifacts_document_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifacts")),
    )
    op.create_index(op.f("ix_artifacts_document_id"), "artifacts", ["document_id"], unique=False)
    op.add_column("changes", sa.Column("change_class", sa.String(length=16), nullable=True))
    op.add_column("changes", sa.Column("silent", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("changes", sa.Column("indexed_at", tables.UtcDateTime(), nullable=True))
    op.add_column("entries", sa.Column("artifact_decision", sa.String(length=32), nullable=True))
    op.add_column("entries", sa.Column("artifact_id", sa.BigInteger(), nullable=True))
    op.add_column("entries", sa.Column("artifact_url", tables.ByteString, nullable=True))
    op.create_index(op.f("ix_entries_artifact_id"), "entries", ["artifact_id"], unique=False)
    op.add_column("listings", sa.Column("card_digest", sa.String(length=64), nullable=True))
    op.add_column("origins", sa.Column("madp", tables.JsonText(), nullable=True))
    op.add_column("snapshots", sa.Column("private", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    # What is held already was marked by nobody; where the word was said, it counts.
    said = "SELECT digest FROM fetches WHERE headers LIKE '%private%'"
    op.execute(f"UPDATE snapshots SET private = true WHERE digest IN ({said})")  # noqa: S608


def downgrade() -> None:
    with op.batch_alter_table("listings") as batch:
        batch.drop_column("card_digest")
    with op.batch_alter_table("entries") as batch:
        batch.drop_index(op.f("ix_entries_artifact_id"))
        batch.drop_column("artifact_url")
        batch.drop_column("artifact_id")
        batch.drop_column("artifact_decision")
    with op.batch_alter_table("changes") as batch:
        batch.drop_column("indexed_at")
        batch.drop_column("silent")
        batch.drop_column("change_class")
    with op.batch_alter_table("snapshots") as batch:
        batch.drop_column("private")
    with op.batch_alter_table("origins") as batch:
        batch.drop_column("madp")
    for table in ("artifacts", "versions", "drifts", "pending"):
        op.drop_table(table)
