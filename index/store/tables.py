"""Every table, once, for both engines. Migrations are checked against this file.

Documents, origins and entries have keys computed from what they are, so that a write never waits for a number and
writing the same thing twice is writing it once. Words, attributes and listings have small numbers, for their ids are
repeated in every posting.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC instant: a timestamp with time zone, or on SQLite text of fixed width that sorts by time."""

    impl = String(32)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(DateTime(timezone=True))
        return dialect.type_descriptor(String(32))

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], str | None] | None:
        """Lay values out in one call, for every row has a dozen of them."""
        return None if dialect.name == "postgresql" else _instant_text

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None]:
        """Read values in one call."""
        return _instant


def _instant_text(value: datetime | None) -> str | None:
    if value is None:
        return None
    return (value if value.tzinfo is UTC else value.astimezone(UTC)).isoformat(timespec="microseconds")


def _instant(value: Any) -> datetime | None:
    if value is None:
        return None
    instant = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return instant if instant.tzinfo is UTC else instant.astimezone(UTC)


# Begins what the quick reader must not read: it would round integers past 64 bits.
_EXACT = " "


class JsonText(TypeDecorator[Any]):
    """A value of ours as JSON text; nothing is queried inside it."""

    impl = Text
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], str | None]:
        """Lay values out in one call, as times are."""
        return _json_or_null

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Read values in one call."""
        return _loads_or_none


def _json_or_null(value: Any) -> str | None:
    return None if value is None else json_text(value)


def json_text(value: Any) -> str:
    """Write a value as JSON."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer past 64 bits, or nesting past what the quick writer takes
        return _EXACT + json.dumps(value)


def _loads_or_none(value: str | None) -> Any:
    return None if value is None else _loads(value)


def _loads(text: str) -> Any:
    if text.startswith(_EXACT):
        return json.loads(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # what only the other writer could write
        return json.loads(text)


# Identifiers compare by their bytes: SQLite does so anyway, PostgreSQL is told to.
ByteString = String().with_variant(String(collation="C"), "postgresql")
# Small numbers given by the database; on SQLite only this spelling makes the key the row's own number.
SmallId = BigInteger().with_variant(Integer(), "sqlite")


def storable(value: str) -> str:
    """Make hostile text fit for a text column: no NUL, no half surrogates."""
    if "\x00" in value or not value.isascii():
        return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    return value


def storable_json(value: Any) -> Any:
    """Make every text in a JSON value fit for a text column."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(name): storable_json(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item) for item in value]
    return value


def key_of(*parts: str) -> int:
    """Compute the 63-bit key of something from what identifies it."""
    name = hashlib.blake2b("\x00".join(parts).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(name.digest(), "big") >> 1


def copy_key(url: str, identifier: str) -> int:
    """Compute the key of what a document says about an identifier, whatever version it states."""
    return key_of("copy", url, identifier)


origins = Table(
    "origins",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("origin", ByteString, nullable=False, unique=True),
    # `config` and `operator` origins are crawled; `lead` ones only for what leads name on them.
    Column("managed_by", String(16), nullable=False),
    Column("active", Boolean, nullable=False),
    Column("options", JsonText, nullable=False),
    Column("added_at", UtcDateTime, nullable=False),
    Column("next_visit_at", UtcDateTime),
    Column("claimed_by", String(128)),
    Column("claimed_at", UtcDateTime),
    Column("claimed_until", UtcDateTime),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("last_visit_at", UtcDateTime),
    Column("last_outcome", String(32)),
    Column("robots", String(32)),
    Column("visits", Integer, nullable=False, server_default=text("0")),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("not_before", UtcDateTime),
    # How many times longer the pauses are after answers of 429, and until when.
    Column("slowdown", Float),
    Column("slow_until", UtcDateTime),
    # Level, failed checks, trust anchor and constellation of an origin with a MADP agent file.
    Column("madp", JsonText),
    # Without `active`: an engine that knows no better would use it to look for a few origins among all active ones.
    Index(None, "next_visit_at", "id"),
)

# Processes that crawl or look after the allowlist, with the digest of the origins that their settings name.
processes = Table(
    "processes",
    metadata,
    Column("name", String(128), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("origins_digest", String(64), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
)

documents = Table(
    "documents",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("origin_id", BigInteger, ForeignKey("origins.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("url", ByteString, nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("mechanism", String(32), nullable=False),
    Column("rank", SmallInteger, nullable=False),
    Column("depth", SmallInteger, nullable=False),
    Column("ancestors", JsonText, nullable=False),
    Column("first_seen_at", UtcDateTime, nullable=False),
    Column("outcome", String(16)),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("status", SmallInteger),
    Column("attempted_at", UtcDateTime),
    Column("fetched_at", UtcDateTime),
    Column("confirmed_at", UtcDateTime),
    Column("changed_at", UtcDateTime),
    Column("full_at", UtcDateTime),
    Column("not_modified_streak", Integer, nullable=False),
    Column("ineffective_streak", Integer, nullable=False),
    Column("distrust_until", UtcDateTime),
    Column("headers", JsonText, nullable=False),
    Column("final_url", Text, nullable=False),
    Column("hops", JsonText, nullable=False),
    Column("digest", String(64), index=True),
    Column("content_digest", String(64)),
    Column("length", Integer),
    Column("parser_version", String(32), nullable=False),
    Column("fresh_until", UtcDateTime),
    Column("next_fetch_at", UtcDateTime),
    Column("interval_s", Float),
    # What is believed of its changes: so many in so many days.
    Column("rate_a", Float),
    Column("rate_b", Float),
    Column("failures", Integer, nullable=False),
    Column("failing_since", UtcDateTime),
    Column("absences", Integer, nullable=False),
    Column("absent_since", UtcDateTime),
    Column("applied_digest", String(64), index=True),
    Column("held", Boolean, nullable=False),
    Column("entry_count", Integer, nullable=False),
    # Whom the signatures of its cards name, each with the thumbprint of the key that it was verified with.
    Column("signers", JsonText),
    # False once nothing points to it any more; it stays for its history.
    Column("watched", Boolean, nullable=False, server_default=text("true")),
    # Faults of the document as a whole, from its last reading.
    Column("problems", JsonText, nullable=False, server_default=text("'[]'")),
)

leads = Table(
    "leads",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("document_id", BigInteger, ForeignKey("documents.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("url", ByteString, nullable=False, index=True),
    Column("mechanism", String(32), nullable=False),
    Column("media_type", Text),
    Column("pointer", Text, nullable=False),
    Column("decision", String(32), nullable=False),
    Column("first_seen_at", UtcDateTime, nullable=False),
    Column("last_seen_at", UtcDateTime, nullable=False),
    Column("withdrawn_at", UtcDateTime),
    Column("missed", SmallInteger, nullable=False, server_default=text("0")),
)

# Append-only: one row a fetch, nothing in it is ever changed.
fetches = Table(
    "fetches",
    metadata,
    Column("id", SmallId, primary_key=True, autoincrement=True),
    Column("document_id", BigInteger, ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("request_at", UtcDateTime, nullable=False),
    Column("response_at", UtcDateTime, nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("status", SmallInteger),
    Column("final_url", Text, nullable=False),
    Column("hops", JsonText, nullable=False),
    Column("conditional", Boolean, nullable=False),
    Column("headers", JsonText, nullable=False),
    Column("wire_size", BigInteger, nullable=False),
    Column("digest", String(64)),
    Column("peer", String(64)),
    Column("robots", String(32), nullable=False),
    Column("parser_version", String(32), nullable=False),
    Column("notes", JsonText, nullable=False),
    Index(None, "document_id", "id"),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("codec", String(8), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("length", Integer, nullable=False),
    Column("media_type", Text),
    Column("stored_at", UtcDateTime, nullable=False),
    # Whether it last came with `Cache-Control: private`, so that it is not ours to pass on.
    Column("private", Boolean, nullable=False, server_default=text("false")),
)

# Bodies that nothing points to any more, and since when; they are pruned in that order.
released = Table(
    "released",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("at", UtcDateTime, nullable=False, index=True),
)

entries = Table(
    "entries",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("document_id", BigInteger, ForeignKey("documents.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("pointer", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("identifier", Text),
    Column("key", ByteString, index=True),
    Column("version", Text),
    # What the entry is in its document, and what became of it among others with the same key.
    Column("standing", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("raw", Text, nullable=False),
    Column("derived", JsonText, nullable=False),
    Column("problems", JsonText, nullable=False),
    Column("source_rank", SmallInteger, nullable=False),
    Column("first_seen_at", UtcDateTime, nullable=False),
    Column("changed_at", UtcDateTime, nullable=False),
    # What the entry's `url` or `data` delivers: whether it is read, and the row of it in `artifacts`.
    Column("artifact_decision", String(32)),
    Column("artifact_id", BigInteger, index=True),
    Column("artifact_url", ByteString),
)

# What a card, a server card or an agent file turned out to be. The key is that of its document, or of the entry that
# holds it inline.
artifacts = Table(
    "artifacts",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("document_id", BigInteger, ForeignKey("documents.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("inline", Boolean, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("shape", String(16), nullable=False),
    Column("normal", JsonText, nullable=False),
    Column("legacy", JsonText, nullable=False),
    Column("digest", String(64), nullable=False, index=True),
    Column("content_digest", String(64), nullable=False),
    Column("secret", Boolean, nullable=False),
    Column("problems", JsonText, nullable=False),
    Column("findings", JsonText, nullable=False),
    # What became of each signature of a card; null where nobody looked.
    Column("signatures", JsonText),
    Column("churn", JsonText, nullable=False),
    Column("first_seen_at", UtcDateTime, nullable=False),
    # First sight of the present content, and the last of the one before it.
    Column("changed_at", UtcDateTime, nullable=False),
    Column("before_at", UtcDateTime),
)

# Superseded states of entries and artifacts, so that an old value can be told from a wrong one.
versions = Table(
    "versions",
    metadata,
    Column("id", SmallId, primary_key=True, autoincrement=True),
    Column("subject", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("identifier", ByteString, index=True),
    Column("digest", String(64), nullable=False, index=True),
    Column("content", Text, nullable=False),
    Column("first_seen_at", UtcDateTime, nullable=False),
    Column("last_seen_at", UtcDateTime, nullable=False),
    Column("replaced_at", UtcDateTime, nullable=False),
    # What the next state changed, as classed edits.
    Column("edits", JsonText, nullable=False),
    Column("change_class", String(16)),
    Column("silent", Boolean, nullable=False),
    Index(None, "subject", "id"),
)

# Disagreements of two documents about the same thing, open ones and closed ones.
drifts = Table(
    "drifts",
    metadata,
    Column("id", SmallId, primary_key=True, autoincrement=True),
    # The same for the same disagreement between the same two sides.
    Column("name", BigInteger, nullable=False, index=True),
    Column("identifier", ByteString, index=True),
    Column("publisher", ByteString, nullable=False),
    Column("code", String(32), nullable=False),
    Column("drift_class", String(16), nullable=False),
    Column("severity", String(8), nullable=False),
    Column("pointer", Text, nullable=False),
    Column("live_pointer", Text, nullable=False),
    Column("members", JsonText, nullable=False),
    Column("catalog_value", JsonText),
    Column("live_value", JsonText),
    # The two sides: an entry, an artifact or a document each, and the documents that are looked at for them.
    Column("catalog_id", BigInteger, nullable=False, index=True),
    Column("live_id", BigInteger, nullable=False, index=True),
    Column("catalog_document", BigInteger, nullable=False, index=True),
    Column("live_document", BigInteger, nullable=False, index=True),
    Column("catalog_url", Text, nullable=False),
    Column("live_url", Text, nullable=False),
    Column("catalog_digest", String(64), index=True),
    Column("live_digest", String(64), index=True),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("confirmed_at", UtcDateTime, nullable=False),
    Column("closed_at", UtcDateTime, index=True),
    Column("closed_by", String(16)),
    # Who moved: `live` when the copy lags behind, `catalog` when the live side does, unknown at first sight.
    Column("moved", String(8), nullable=False),
    # The observations that bound the lag: the live side's last without and first with the new value, the copy's last
    # with and first without the old one.
    Column("live_old_at", UtcDateTime),
    Column("live_new_at", UtcDateTime, nullable=False),
    Column("copy_old_at", UtcDateTime, nullable=False),
    Column("copy_new_at", UtcDateTime),
    Column("live_seen_at", UtcDateTime, nullable=False),
    Index(None, "opened_at", "id"),
)

# What a visit read anew and has not compared yet; the end of the visit judges it, or that of the next one.
pending = Table(
    "pending",
    metadata,
    Column("origin_id", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(8), primary_key=True),
    Column("subject", BigInteger, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
)

listings = Table(
    "listings",
    metadata,
    Column("id", SmallId, primary_key=True, autoincrement=True),
    Column("identifier", ByteString, nullable=False, unique=True),
    Column("entry_id", BigInteger),
    Column("document_id", BigInteger, index=True),
    Column("display_name", Text, nullable=False),
    Column("folded_name", ByteString, nullable=False, index=True),
    Column("type", ByteString, nullable=False, index=True),
    Column("publisher", ByteString, nullable=False, index=True),
    Column("leaf", ByteString, nullable=False, index=True),
    Column("digest", String(64), nullable=False),
    # The content of the card that search knows beside the entry.
    Column("card_digest", String(64)),
    Column("sources", Integer, nullable=False, server_default=text("1")),
    Column("first_seen_at", UtcDateTime, nullable=False, index=True),
    Column("changed_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False, index=True),
    Column("removed_at", UtcDateTime, index=True),
)

# The wide part of a listing, apart from the narrow row that filters and facets read.
listing_bodies = Table(
    "listing_bodies",
    metadata,
    Column("listing_id", SmallId, ForeignKey("listings.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    # The entry as Retrieve serves it, and as Search and List show it.
    Column("entry", Text, nullable=False),
    Column("projection", Text, nullable=False),
)

changes = Table(
    "changes",
    metadata,
    Column("cursor", BigInteger, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("kind", String(24), nullable=False),
    Column("identifier", ByteString, nullable=False, index=True),
    Column("url", Text),
    Column("mechanism", String(32)),
    Column("members", JsonText, nullable=False),
    Column("old_digest", String(64)),
    Column("new_digest", String(64)),
    Column("reason", Text, nullable=False),
    # How grave an alteration is, and whether it came without a new version.
    Column("change_class", String(16)),
    Column("silent", Boolean, nullable=False, server_default=text("false")),
    # When search could show it; the time since `at` is our own lag.
    Column("indexed_at", UtcDateTime),
)

words = Table(
    "words",
    metadata,
    Column("id", SmallId, primary_key=True, autoincrement=True),
    Column("stem", ByteString, nullable=False, unique=True),
    Column("entry_count", Integer, nullable=False),
)

postings = Table(
    "postings",
    metadata,
    Column("word_id", SmallId, primary_key=True, autoincrement=False),
    Column("listing_id", SmallId, primary_key=True, autoincrement=False),
    Column("impact", SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Which words a listing has, packed, so that an update can take its postings out.
listing_words = Table(
    "listing_words",
    metadata,
    Column("listing_id", SmallId, primary_key=True, autoincrement=False),
    Column("words", LargeBinary, nullable=False),
)

attributes = Table(
    "attributes",
    metadata,
    Column("id", SmallId, primary_key=True, autoincrement=True),
    Column("path", ByteString, nullable=False),
    Column("value", ByteString, nullable=False),
    Column("entry_count", Integer, nullable=False),
    Index(None, "path", "value", unique=True),
)

attribute_listings = Table(
    "attribute_listings",
    metadata,
    Column("attribute_id", SmallId, primary_key=True, autoincrement=False),
    Column("listing_id", SmallId, primary_key=True, autoincrement=False),
    Index(None, "listing_id", "attribute_id"),
    sqlite_with_rowid=False,
)

# Single values: number of entries, last cursor, analyser version, page-token secret.
facts = Table(
    "facts",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("number", BigInteger, nullable=False, server_default=text("0")),
    Column("value", LargeBinary),
)
