import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from config.errors import OperatorError
from config.settings import Settings
from crawler.assembly import make_client, make_policy
from crawler.clock import Clock, SystemClock
from crawler.commands.render import clean, lag_text, print_json, table
from crawler.commands.session import opened_database, run_async, settings_of
from crawler.discover import Target
from crawler.fetch.client import FetchClient, Request
from crawler.policy.scope import Admitted, OriginRules, Refused, Scope, make_scope
from crawler.shelf import MemoryShelf
from crawler.visit import Visitor
from index.brand_manifest import (
    WELL_KNOWN_PATH,
    Evidence,
    Manifest,
    NoManifest,
    Reason,
    brand_origin,
    domain_of,
    read_manifest,
    twin_of,
)
from index.documents import DocumentKind, DocumentVisit, Outcome
from index.endorsement import (
    Candidate,
    Endorsement,
    OlderState,
    Verdict,
    declares_other_version,
    read_candidate,
    record,
)
from index.endorsement import endorse as judge
from index.identity import is_ard_identifier
from index.records import RANK_OF_MECHANISM, Lead, Mechanism
from index.store.endorse import has_database, states_of_entry
from index.urls import BadUrl, host_of, origin_of, parse_url

_STATUS = {Verdict.MATCH: 0, Verdict.MISMATCH: 1, Verdict.INCONCLUSIVE: 2}
_DEADLINE = timedelta(seconds=60)


@click.command()
@click.option("--brand", required=True, metavar="DOMAIN", help="The brand that is meant, by its domain.")
@click.option("--entry", "file", type=click.Path(path_type=Path, dir_okay=False), help="File with the candidate.")
@click.option("--registry", metavar="URL", help="Base URL of the registry that has the candidate.")
@click.option("--id", "identifier", metavar="URN", help="Identifier of the candidate at the registry.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def endorse(
    context: click.Context,
    brand: str,
    file: Path | None,
    registry: str | None,
    identifier: str | None,
    as_json: bool,
) -> None:
    """Tell whether the brand at DOMAIN publishes exactly this entry, in FILE or at a registry."""
    settings = settings_of(context)
    domain = domain_of(brand)
    if domain is None:
        raise OperatorError(f"--brand {brand}: expected a domain such as acme.example")
    if (file is None) == (registry is None) or (registry is None) != (identifier is None):
        raise OperatorError("expected either --entry FILE, or --registry URL with --id URN")
    result = run_async(_endorse(settings, SystemClock(), domain, file, registry, identifier))
    if as_json:
        print_json(record(result))
    else:
        click.echo(_summary(record(result)))
    context.exit(_STATUS[result.verdict])


class _Unavailable(Exception):
    """The registry did not give the candidate; the message says why."""


async def _endorse(
    settings: Settings, clock: Clock, brand: str, file: Path | None, registry: str | None, identifier: str | None
) -> Endorsement:
    origin = brand_origin(brand, (item.origin for item in settings.origins), settings.network.hosts)
    async with make_client(settings, clock) as client:
        try:
            if registry is not None and identifier is not None:
                candidate = await _retrieve(client, settings, registry, identifier)
            else:
                candidate = _read(file or Path(), settings)
        except _Unavailable as error:
            evidence = Evidence(origin + WELL_KNOWN_PATH)
            reason = Reason.CANDIDATE_UNAVAILABLE
            return Endorsement(Verdict.INCONCLUSIVE, brand, reason, str(error), identifier, evidence)
        manifest = await _fetch_manifest(client, clock, settings, origin)
    result = judge(candidate, brand, manifest, namespace=settings.osd.namespace, now=clock.now())
    if result.verdict is not Verdict.MISMATCH or result.identifier is None or isinstance(manifest, NoManifest):
        return result
    older = await _older(settings, manifest.evidence.url, result.identifier)
    return judge(candidate, brand, manifest, namespace=settings.osd.namespace, now=clock.now(), older=older)


async def _older(settings: Settings, url: str, identifier: str) -> Sequence[OlderState]:
    """Look for what the brand published before in a database that has watched it; without one nothing is known."""
    if not has_database(settings.storage.url):
        return ()
    try:
        async with opened_database(settings) as database:
            return await database.read(states_of_entry, url, identifier)
    except OperatorError as error:
        click.echo(f"ardvark: what the brand published before is not known: {clean(error, 300)}", err=True)
        return ()


# --- the candidate ----------------------------------------------------------------------------------------------------


def _read(file: Path, settings: Settings) -> Candidate:
    try:
        return read_candidate(file.read_bytes(), max_depth=settings.limits.json_depth)
    except OSError as error:
        raise OperatorError(f"{file}: cannot be read ({error.strerror})") from None


async def _retrieve(client: FetchClient, settings: Settings, registry: str, identifier: str) -> Candidate:
    """Ask a registry for the whole entry (ARD 5.3.4)."""
    url = _retrieve_url(registry, identifier)
    scope = make_scope(
        [OriginRules(origin_of(url))], named_hosts=settings.network.hosts, allow_http=settings.network.allow_http
    )
    request = Request(url, settings.limits.manifest_size)
    observation = await client.fetch(request, _approving(scope, url), lambda _: settings.politeness.min_delay)
    if observation.outcome is not Outcome.FETCHED:
        why = observation.detail or observation.reason or observation.status
        raise _Unavailable(f"the registry gave no entry: {observation.outcome} ({why})")
    candidate = read_candidate(observation.body, copy=True, max_depth=settings.limits.json_depth)
    osd = settings.osd
    if declares_other_version(candidate.value, osd.contract_version_member, osd.contract_version):
        raise OperatorError(f"{registry}: its answer is of another contract version, so it is discarded")
    return candidate


def _retrieve_url(registry: str, identifier: str) -> str:
    if not is_ard_identifier(identifier):
        raise OperatorError(f"--id {identifier}: expected urn:air:<publisher>:<namespace>:<name>")
    try:
        base = parse_url(registry)
    except BadUrl as error:
        raise OperatorError(f"--registry {registry}: expected {error}") from None
    if base.raw_query_string or base.user is not None:
        raise OperatorError(f"--registry {registry}: expected a base URL without credentials and query")
    return f"{str(base).rstrip('/')}/agents/{quote(identifier, safe='')}"


def _approving(scope: Scope, url: str) -> Callable[[str], Awaitable[Admitted | Refused]]:
    async def approve(target: str) -> Admitted | Refused:
        admitted = scope.admit(target)
        # The identifier stays one encoded segment, which canonical URLs would decode.
        return Admitted(url, admitted.origin) if target == url and isinstance(admitted, Admitted) else admitted

    return approve


# --- the manifest -----------------------------------------------------------------------------------------------------


class _ManifestShelf(MemoryShelf):
    """Keeps the one manifest whole, also where nothing else may."""

    manifest: DocumentVisit | None = None

    async def record(self, visit: DocumentVisit) -> None:
        if visit.state.kind is DocumentKind.MANIFEST:
            self.manifest = visit
        await super().record(visit)


async def _fetch_manifest(client: FetchClient, clock: Clock, settings: Settings, origin: str) -> Manifest | NoManifest:
    """Fetch a brand's manifest as a crawl would, robots.txt included, and nothing that it points to."""
    asked_at = clock.now()
    url = origin + WELL_KNOWN_PATH
    # Without surfaces no lead, card or probe is followed.
    rules = OriginRules(origin, surfaces=(), pages=())
    twin = twin_of(host_of(origin))
    allowed = [rules] if twin is None else [rules, OriginRules(origin.replace(host_of(origin), twin, 1), surfaces=())]
    scope = make_scope(allowed, named_hosts=settings.network.hosts, allow_http=settings.network.allow_http)
    if isinstance(refused := scope.admit(url), Refused):
        return NoManifest(Reason.MANIFEST_UNAVAILABLE, refused.detail, Evidence(url))
    visitor = Visitor(client, clock, replace(make_policy(settings), max_documents=1))
    lead = Lead(url, Mechanism.WELL_KNOWN, RANK_OF_MECHANISM[Mechanism.WELL_KNOWN])
    shelf = _ManifestShelf()
    ends = asyncio.get_running_loop().time() + _DEADLINE.total_seconds()
    extra = [Target(DocumentKind.MANIFEST, lead)]
    await visitor.visit(rules, scope, shelf, {}, force=True, probe=False, extra=extra, deadline=ends)
    visit = shelf.manifest
    if visit is None:
        return NoManifest(Reason.MANIFEST_UNAVAILABLE, "no answer within the deadline", Evidence(url))
    problems = (
        []
        if visit.reading is None
        else [*visit.reading.problems, *(problem for entry in visit.reading.entries for problem in entry.problems)]
    )
    return read_manifest(
        visit.state, visit.observation.body or None, problems, now=asked_at, max_depth=settings.limits.json_depth
    )


# --- for people -------------------------------------------------------------------------------------------------------


def _remark(diagnostic: Mapping[str, Any]) -> str:
    if "lag" not in diagnostic:
        return str(diagnostic["code"])
    seen = f"last seen {diagnostic['lastSeenAt']}"
    return f"{diagnostic['code']}: {seen}, so the candidate has been behind for {lag_text(diagnostic['lag'])}"


def _summary(result: dict[str, Any]) -> str:
    why = f" ({result['reason']}): {clean(result['detail'], 300)}" if result["reason"] else ""
    parts = [f"{result['verdict']}{why}"]
    evidence = result["manifest"] or {}
    rows = [
        ("brand", result["brandDomain"]),
        ("entry", result["identifier"]),
        ("manifest", evidence.get("url")),
        ("answered by", evidence.get("finalUrl") if evidence.get("fetchedAt") else None),
        ("fetched", evidence.get("fetchedAt")),
        ("valid until", result["validUntil"]),
        ("entry digest", result["entryDigest"]),
        *(("remark", _remark(item)) for item in result["diagnostics"]),
    ]
    parts.append("\n".join(f"{name:12}  {clean(value, 200)}" for name, value in rows if value))
    if result["differences"]:
        cells = [
            (item["pointer"] or "/", *("-" if item[side] is None else item[side] for side in ("candidate", "manifest")))
            for item in result["differences"]
        ]
        parts.append(table(("differs at", "candidate", "manifest"), cells))
    if result["differencesOmitted"]:
        parts.append("and further differences")
    return "\n\n".join(parts)
