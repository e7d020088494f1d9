"""From settings to the parts of a process. Nothing here decides anything."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from config.errors import OperatorError
from config.settings import OriginSettings, Settings, TrustedKeysSettings
from config.units import format_duration, parse_duration
from crawler.clock import Clock
from crawler.fetch.client import FetchClient, Limits
from crawler.fetch.limiter import Limiter
from crawler.fetch.robots import RobotsPolicy
from crawler.judge import JudgeRules
from crawler.policy.addresses import AddressPolicy
from crawler.policy.cadence import Range
from crawler.policy.robots import PRODUCT_TOKEN
from crawler.policy.scope import OriginRules, Scope, make_scope
from crawler.policy.watch import WatchRules
from crawler.signing import TrustedKeys
from crawler.surfaces.base import Bounds
from crawler.visit import VisitPolicy
from index.signing_keys import read_keys
from index.strict_json import MalformedJson, parse

VERSION = version("ardvark")


def user_agent(settings: Settings) -> str:
    """Name ourselves honestly, with a page to read about us (RFC 9110 10.1.5)."""
    return f"{PRODUCT_TOKEN}/{VERSION} (+{settings.contact_url})"


def make_client(settings: Settings, clock: Clock) -> FetchClient:
    """Build the client for everything outgoing."""
    network = settings.network
    return FetchClient(
        clock=clock,
        limiter=Limiter(clock),
        addresses=AddressPolicy(network.allow_private),
        user_agent=user_agent(settings),
        limits=Limits(
            connect=network.connect_timeout,
            headers=network.header_timeout,
            total=network.total_timeout,
            redirects=network.max_redirects,
            retry_after=settings.politeness.max_retry_after,
        ),
        hosts=network.hosts,
        nameservers=network.nameservers,
        extra_ca_file=network.extra_ca_file,
        connections=network.connections,
    )


def make_bounds(settings: Settings) -> Bounds:
    """Build the bounds on what is read of a document."""
    return Bounds(
        json_depth=settings.limits.json_depth,
        entries=settings.limits.entries,
        links=settings.limits.links,
        string_size=settings.limits.string_size,
        nesting_depth=settings.crawl.nesting_depth,
        alignment=settings.trust.alignment,
    )


def make_policy(settings: Settings) -> VisitPolicy:
    """Build the policy of visits."""
    crawl = settings.crawl
    manifest = _watch(settings, Range(crawl.min_interval, crawl.max_interval))
    page = _watch(settings, Range(crawl.page_interval, max(crawl.page_interval, crawl.max_interval)))
    return VisitPolicy(
        robots=RobotsPolicy(
            max_size=settings.limits.robots_size,
            watch=manifest,
            min_delay=settings.politeness.min_delay,
            max_delay=settings.politeness.max_delay,
        ),
        rules=JudgeRules(
            bounds=make_bounds(settings),
            manifest_watch=manifest,
            page_watch=page,
            page_size=settings.limits.page_size,
            list_private=crawl.list_private,
            withdraw_on_robots=crawl.withdraw_on_robots,
        ),
        manifest_size=settings.limits.manifest_size,
        max_documents=crawl.max_documents,
        max_artifacts=crawl.max_artifacts,
        trusted_keys=tuple(map(_trusted, settings.trusted_keys)),
    )


def _trusted(entry: TrustedKeysSettings) -> TrustedKeys:
    """Read a file of keys; whatever is wrong with it is the operator's to mend."""
    try:
        keys = read_keys(parse(entry.file.read_bytes()).value)
    except OSError as error:
        raise OperatorError(f"{entry.file}: cannot be read ({error.strerror})") from None
    except MalformedJson as error:
        raise OperatorError(f"{entry.file}: expected a JSON Web Key Set: {error.message}") from None
    if keys.problems:
        faults = "\n".join(f"  {problem.pointer or '/'}: {problem.message}" for problem in keys.problems)
        raise OperatorError(f"{entry.file}: expected a JSON Web Key Set of public keys:\n{faults}")
    return TrustedKeys(keys, entry.hosts)


def _watch(settings: Settings, allowed: Range) -> WatchRules:
    crawl = settings.crawl
    return WatchRules(
        allowed=allowed,
        absent_ceiling=crawl.absent_max_interval,
        failure_ceiling=timedelta(hours=24),
        default_freshness=crawl.default_freshness,
        unconditional_every=crawl.unconditional_every,
        unconditional_after=crawl.unconditional_after,
        removal_sightings=crawl.removal_sightings,
        removal_period=crawl.removal_period,
    )


def origin_options(entry: OriginSettings) -> dict[str, Any]:
    """Write the options of an origin as they are stored."""
    options: dict[str, Any] = {
        "surfaces": list(entry.surfaces),
        "pages": list(entry.pages),
        "artifact_hosts": list(entry.artifact_hosts),
    }
    if entry.min_interval is not None:
        options["min_interval"] = format_duration(entry.min_interval)
    if entry.max_interval is not None:
        options["max_interval"] = format_duration(entry.max_interval)
    return options


def origin_rules(origin: str, options: Mapping[str, Any]) -> OriginRules:
    """Read the options of an origin as they are stored."""
    return OriginRules(
        origin=origin,
        surfaces=tuple(options.get("surfaces", ("ard",))),
        pages=tuple(options.get("pages", ("/",))),
        artifact_hosts=tuple(options.get("artifact_hosts", ())),
        min_interval=parse_duration(options["min_interval"]) if "min_interval" in options else None,
        max_interval=parse_duration(options["max_interval"]) if "max_interval" in options else None,
    )


def build_scope(settings: Settings, further: Iterable[OriginRules] = ()) -> Scope:
    """Build the allowlist from the settings and from what the operator added later."""
    listed = [origin_rules(entry.origin, origin_options(entry)) for entry in settings.origins]
    known = {rules.origin for rules in listed}
    listed += [rules for rules in further if rules.origin not in known]
    return make_scope(listed, named_hosts=settings.network.hosts, allow_http=settings.network.allow_http)
