"""The first schema."""

import secrets

import sqlalchemy as sa
from alembic import op

from index.store import tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attribute_listings",
        sa.Column("attribute_id", tables.SmallId, autoincrement=False, nullable=False),
        sa.Column("listing_id", tables.SmallId, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("attribute_id", "listing_id", name=op.f("pk_attribute_listings")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_attribute_listings_listing_id_attribute_id"),
        "attribute_listings",
        ["listing_id", "attribute_id"],
        unique=False,
    )
    op.create_table(
        "attributes",
        sa.Column("id", tables.SmallId, autoincrement=True, nullable=False),
        sa.Column("path", tables.ByteString, nullable=False),
        sa.Column("value", tables.ByteString, nullable=False),
        sa.Column("entry_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attributes")),
    )
    op.create_index(op.f("ix_attributes_path_value"), "attributes", ["path", "value"], unique=True)
    op.create_table(
        "changes",
        sa.Column("cursor", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", tables.UtcDateTime(), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("identifier", tables.ByteString, nullable=False),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("mechanism", sa.String(length=32), nullable=True),
        sa.Column("members", tables.JsonText(), nullable=False),
        sa.Column("old_digest", sa.String(length=64), nullable=True),
        sa.Column("new_digest", sa.String(length=64), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("cursor", name=op.f("pk_changes")),
    )
    op.create_index(op.f("ix_changes_identifier"), "changes", ["identifier"], unique=False)
    op.create_table(
        "facts",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("number", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_facts")),
    )
    op.create_table(
        "listing_words",
        sa.Column("listing_id", tables.SmallId, autoincrement=False, nullable=False),
        sa.Column("words", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("listing_id", name=op.f("pk_listing_words")),
    )
    op.create_table(
        "listings",
        sa.Column("id", tables.SmallId, autoincrement=True, nullable=False),
        sa.Column("identifier", tables.ByteString, nullable=False),
        sa.Column("entry_id", sa.BigInteger(), nullable=True),
        sa.Column("document_id", sa.BigInteger(), nullable=True),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("folded_name", tables.ByteString, nullable=False),
        sa.Column("type", tables.ByteString, nullable=False),
        sa.Column("publisher", tables.ByteString, nullable=False),
        sa.Column("leaf", tables.ByteString, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("sources", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("first_seen_at", tables.UtcDateTime(), nullable=False),
        sa.Column("changed_at", tables.UtcDateTime(), nullable=False),
        sa.Column("updated_at", tables.UtcDateTime(), nullable=False),
        sa.Column("removed_at", tables.UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_listings")),
        sa.UniqueConstraint("identifier", name=op.f("uq_listings_identifier")),
    )
    op.create_index(op.f("ix_listings_document_id"), "listings", ["document_id"], unique=False)
    op.create_index(op.f("ix_listings_first_seen_at"), "listings", ["first_seen_at"], unique=False)
    op.create_index(op.f("ix_listings_folded_name"), "listings", ["folded_name"], unique=False)
    op.create_index(op.f("ix_listings_leaf"), "listings", ["leaf"], unique=False)
    op.create_index(op.f("ix_listings_publisher"), "listings", ["publisher"], unique=False)
    op.create_index(op.f("ix_listings_removed_at"), "listings", ["removed_at"], unique=False)
    op.create_index(op.f("ix_listings_type"), "listings", ["type"], unique=False)
    op.create_index(op.f("ix_listings_updated_at"), "listings", ["updated_at"], unique=False)
    op.create_table(
        "origins",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("origin", tables.ByteString, nullable=False),
        sa.Column("managed_by", sa.String(length=16), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("options", tables.JsonText(), nullable=False),
        sa.Column("added_at", tables.UtcDateTime(), nullable=False),
        sa.Column("next_visit_at", tables.UtcDateTime(), nullable=True),
        sa.Column("claimed_by", sa.String(length=128), nullable=True),
        sa.Column("claimed_until", tables.UtcDateTime(), nullable=True),
        sa.Column("fence", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_visit_at", tables.UtcDateTime(), nullable=True),
        sa.Column("last_outcome", sa.String(length=32), nullable=True),
        sa.Column("robots", sa.String(length=32), nullable=True),
        sa.Column("visits", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("not_before", tables.UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_origins")),
        sa.UniqueConstraint("origin", name=op.f("uq_origins_origin")),
    )
    op.create_index(op.f("ix_origins_active_next_visit_at"), "origins", ["active", "next_visit_at"], unique=False)
    op.create_table(
        "postings",
        sa.Column("word_id", tables.SmallId, autoincrement=False, nullable=False),
        sa.Column("listing_id", tables.SmallId, autoincrement=False, nullable=False),
        sa.Column("impact", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("word_id", "listing_id", name=op.f("pk_postings")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "snapshots",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("codec", sa.String(length=8), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=True),
        sa.Column("stored_at", tables.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_snapshots")),
    )
    op.create_table(
        "words",
        sa.Column("id", tables.SmallId, autoincrement=True, nullable=False),
        sa.Column("stem", tables.ByteString, nullable=False),
        sa.Column("entry_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_words")),
        sa.UniqueConstraint("stem", name=op.f("uq_words_stem")),
    )
    op.create_table(
        "documents",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("origin_id", sa.BigInteger(), nullable=False),
        sa.Column("url", tables.ByteString, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("mechanism", sa.String(length=32), nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("depth", sa.SmallInteger(), nullable=False),
        sa.Column("ancestors", tables.JsonText(), nullable=False),
        sa.Column("first_seen_at", tables.UtcDateTime(), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("attempted_at", tables.UtcDateTime(), nullable=True),
        sa.Column("fetched_at", tables.UtcDateTime(), nullable=True),
        sa.Column("confirmed_at", tables.UtcDateTime(), nullable=True),
        sa.Column("changed_at", tables.UtcDateTime(), nullable=True),
        sa.Column("full_at", tables.UtcDateTime(), nullable=True),
        sa.Column("not_modified_streak", sa.Integer(), nullable=False),
        sa.Column("ineffective_streak", sa.Integer(), nullable=False),
        sa.Column("distrust_until", tables.UtcDateTime(), nullable=True),
        sa.Column("headers", tables.JsonText(), nullable=False),
        sa.Column("final_url", sa.Text(), nullable=False),
        sa.Column("hops", tables.JsonText(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=True),
        sa.Column("content_digest", sa.String(length=64), nullable=True),
        sa.Column("length", sa.Integer(), nullable=True),
        sa.Column("parser_version", sa.String(length=32), nullable=False),
        sa.Column("fresh_until", tables.UtcDateTime(), nullable=True),
        sa.Column("next_fetch_at", tables.UtcDateTime(), nullable=True),
        sa.Column("interval_s", sa.Float(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_since", tables.UtcDateTime(), nullable=True),
        sa.Column("absences", sa.Integer(), nullable=False),
        sa.Column("absent_since", tables.UtcDateTime(), nullable=True),
        sa.Column("applied_digest", sa.String(length=64), nullable=True),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("entry_count", sa.Integer(), nullable=False),
        sa.Column("watched", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("problems", tables.JsonText(), server_default=sa.text("'[]'"), nullable=False),
        sa.ForeignKeyConstraint(["origin_id"], ["origins.id"], name=op.f("fk_documents_origin_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
        sa.UniqueConstraint("url", name=op.f("uq_documents_url")),
    )
    op.create_index(op.f("ix_documents_origin_id"), "documents", ["origin_id"], unique=False)
    op.create_table(
        "listing_bodies",
        sa.Column("listing_id", tables.SmallId, autoincrement=False, nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("projection", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["listing_id"], ["listings.id"], name=op.f("fk_listing_bodies_listing_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("listing_id", name=op.f("pk_listing_bodies")),
    )
    op.create_table(
        "entries",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("document_id", sa.BigInteger(), nullable=False),
        sa.Column("pointer", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("identifier", sa.Text(), nullable=True),
        sa.Column("key", tables.ByteString, nullable=True),
        sa.Column("version", sa.Text(), nullable=True),
        sa.Column("standing", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("derived", tables.JsonText(), nullable=False),
        sa.Column("problems", tables.JsonText(), nullable=False),
        sa.Column("source_rank", sa.SmallInteger(), nullable=False),
        sa.Column("first_seen_at", tables.UtcDateTime(), nullable=False),
        sa.Column("changed_at", tables.UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_entries_document_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entries")),
    )
    op.create_index(op.f("ix_entries_document_id"), "entries", ["document_id"], unique=False)
    op.create_index(op.f("ix_entries_key"), "entries", ["key"], unique=False)
    op.create_table(
        "fetches",
        sa.Column("id", tables.SmallId, autoincrement=True, nullable=False),
        sa.Column("document_id", sa.BigInteger(), nullable=False),
        sa.Column("request_at", tables.UtcDateTime(), nullable=False),
        sa.Column("response_at", tables.UtcDateTime(), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("final_url", sa.Text(), nullable=False),
        sa.Column("hops", tables.JsonText(), nullable=False),
        sa.Column("conditional", sa.Boolean(), nullable=False),
        sa.Column("headers", tables.JsonText(), nullable=False),
        sa.Column("wire_size", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=True),
        sa.Column("peer", sa.String(length=64), nullable=True),
        sa.Column("robots", sa.String(length=32), nullable=False),
        sa.Column("parser_version", sa.String(length=32), nullable=False),
        sa.Column("notes", tables.JsonText(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_fetches_document_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fetches")),
    )
    op.create_index(op.f("ix_fetches_document_id_id"), "fetches", ["document_id", "id"], unique=False)
    op.create_table(
        "leads",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("document_id", sa.BigInteger(), nullable=False),
        sa.Column("url", tables.ByteString, nullable=False),
        sa.Column("mechanism", sa.String(length=32), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=True),
        sa.Column("pointer", sa.Text(), nullable=False),
        sa.Column("decision", sa.String(length=32), nullable=False),
        sa.Column("first_seen_at", tables.UtcDateTime(), nullable=False),
        sa.Column("last_seen_at", tables.UtcDateTime(), nullable=False),
        sa.Column("withdrawn_at", tables.UtcDateTime(), nullable=True),
        sa.Column("missed", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_leads_document_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_leads")),
    )
    op.create_index(op.f("ix_leads_document_id"), "leads", ["document_id"], unique=False)
    op.create_index(op.f("ix_leads_url"), "leads", ["url"], unique=False)
    facts = sa.table("facts", sa.column("name"), sa.column("number"), sa.column("value", sa.LargeBinary))
    op.bulk_insert(
        facts,
        [
            {"name": "cursor", "number": 0, "value": None},
            {"name": "entries", "number": 0, "value": None},
            # Seals page tokens, so that processes that share the database accept one another's.
            {"name": "secret", "number": 0, "value": secrets.token_bytes(32)},
        ],
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_leads_url"), table_name="leads")
    op.drop_index(op.f("ix_leads_document_id"), table_name="leads")
    op.drop_table("leads")
    op.drop_index(op.f("ix_fetches_document_id_id"), table_name="fetches")
    op.drop_table("fetches")
    op.drop_index(op.f("ix_entries_key"), table_name="entries")
    op.drop_index(op.f("ix_entries_document_id"), table_name="entries")
    op.drop_table("entries")
    op.drop_table("listing_bodies")
    op.drop_index(op.f("ix_documents_origin_id"), table_name="documents")
    op.drop_table("documents")
    op.drop_table("words")
    op.drop_table("snapshots")
    op.drop_table("postings")
    op.drop_index(op.f("ix_origins_active_next_visit_at"), table_name="origins")
    op.drop_table("origins")
    op.drop_index(op.f("ix_listings_updated_at"), table_name="listings")
    op.drop_index(op.f("ix_listings_type"), table_name="listings")
    op.drop_index(op.f("ix_listings_removed_at"), table_name="listings")
    op.drop_index(op.f("ix_listings_publisher"), table_name="listings")
    op.drop_index(op.f("ix_listings_leaf"), table_name="listings")
    op.drop_index(op.f("ix_listings_folded_name"), table_name="listings")
    op.drop_index(op.f("ix_listings_first_seen_at"), table_name="listings")
    op.drop_index(op.f("ix_listings_document_id"), table_name="listings")
    op.drop_table("listings")
    op.drop_table("listing_words")
    op.drop_table("facts")
    op.drop_index(op.f("ix_changes_identifier"), table_name="changes")
    op.drop_table("changes")
    op.drop_index(op.f("ix_attributes_path_value"), table_name="attributes")
    op.drop_table("attributes")
    op.drop_index(op.f("ix_attribute_listings_listing_id_attribute_id"), table_name="attribute_listings")
    op.drop_table("attribute_listings")
