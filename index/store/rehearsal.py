"""What a visit would change: the very writes of a visit, in a transaction that is rolled back.

For `Database.rehearse` alone. An origin that the settings name and the database does not know yet is taken up first, as
a visit would.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from index.store.difference import Difference, difference, mark
from index.store.frontier import Claim, Settlement, claim_due, managed_origins, put_origins
from index.store.writer import RecordLeads, RecordRendition, RecordVisit, SettleVisit, write_units

_NOBODY = "rehearsal"
_LEASE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What one visit to one origin brought, and how it would have been settled."""

    units: Sequence[RecordVisit | RecordLeads | RecordRendition]
    settlement: Settlement


def claims_of(
    connection: Connection, configured: Mapping[str, Mapping[str, Any]], names: Sequence[str], now: datetime
) -> list[Claim]:
    """Give the claims that visits to these origins would begin with; those that another process holds are left out."""
    stored = managed_origins(connection, "config")
    wanted = {name: configured[name] for name in names if name in configured}
    changed = {name: options for name, options in wanted.items() if stored.get(name) != options}
    if changed:
        put_origins(connection, "config", changed, now)
    return claim_due(connection, _NOBODY, now, _LEASE, len(names), names)


def differences_of(
    connection: Connection,
    configured: Mapping[str, Mapping[str, Any]],
    rehearsals: Sequence[Rehearsal],
    now: datetime,
) -> Difference:
    """Tell what visits would change, written one after the other."""
    names = [item.settlement.origin for item in rehearsals]
    before = mark(connection, names)
    claims = {claim.origin: claim for claim in claims_of(connection, configured, names, now)}
    for item in rehearsals:
        claim = claims.get(item.settlement.origin)
        fence = claim.fence if claim is not None else item.settlement.fence
        settled = SettleVisit(replace(item.settlement, fence=fence))
        write_units(connection, [*item.units, settled], now)
    return difference(connection, before, names)
