"""What entries said before: the states that later readings superseded."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, select

from index.diff import Edit, diff_entries, is_silent, summary
from index.findings import redact
from index.store.engines import chunks, insert_rows
from index.store.tables import copy_key, entries, storable, storable_json, versions
from index.strict_json import digest

MOST_EDITS = 100


@dataclass(frozen=True, slots=True)
class Alteration:
    """An entry that says something else now: its former text, since when it stood, and its present one."""

    identifier: str | None
    old: str
    since: datetime
    new: str


def texts_of(connection: Connection, wanted: Mapping[int, int]) -> dict[int, str]:
    """Give the texts of entries under other keys than their own."""
    texts: dict[int, str] = {}
    for chunk in chunks(wanted.values()):
        query: Select[Any] = select(entries.c.id, entries.c.raw).where(entries.c.id.in_(chunk))
        texts.update((row.id, row.raw) for row in connection.execute(query))
    return {key: texts[other] for key, other in wanted.items() if other in texts}


def keep_versions(
    connection: Connection, url: str, altered: Sequence[Alteration], *, before_at: datetime | None, at: datetime
) -> None:
    """Keep the former states of entries of a document, so that an old value can be told from a wrong one."""
    rows = [_row(url, item, item.identifier, before_at, at) for item in altered if item.identifier is not None]
    insert_rows(connection, versions, rows)


def _row(url: str, item: Alteration, identifier: str, before_at: datetime | None, at: datetime) -> dict[str, Any]:
    edits = diff_entries(json.loads(item.old), json.loads(item.new))
    return {
        "subject": copy_key(url, identifier),
        "kind": "entry",
        "identifier": identifier,
        "digest": digest(item.old.encode("utf-8", "surrogatepass")),
        "content": item.old,
        "first_seen_at": item.since,
        "last_seen_at": before_at or item.since,
        "replaced_at": at,
        "edits": [edit_row(edit) for edit in edits[:MOST_EDITS]],
        "change_class": summary(edits),
        "silent": is_silent(edits),
    }


def edit_row(edit: Edit) -> dict[str, Any]:
    """Lay out an edit as JSON, with what looks like a credential masked."""
    row: dict[str, Any] = {"op": edit.operation, "pointer": storable(edit.pointer), "class": edit.kind}
    if edit.old is not None:
        row["old"] = storable_json(redact(edit.old))
    if edit.new is not None:
        row["new"] = storable_json(redact(edit.new))
    if edit.note:
        row["note"] = storable(edit.note)
    return row
