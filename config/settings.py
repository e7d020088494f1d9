"""Every setting once: field, default, unit and one line of help.

`config.loading` reads them; `docs/settings.md` and `config/default.toml` are generated from here.
"""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from config.units import Age, Duration, Size, format_duration
from config.values import (
    Address,
    DatabaseUrl,
    ExistingFile,
    HostPattern,
    HttpUrl,
    Identifier,
    Listen,
    Namespace,
    Network,
    NonEmptyStr,
    Origin,
    PagePath,
    Surface,
    reachable,
)

ENV_PREFIX = "ARDVARK_"


def _misfit(path: tuple[str | int, ...], value: str, expected: str) -> InitErrorDetails:
    """Describe a value that is right by itself and doesn't go with another."""
    return InitErrorDetails(
        type=PydanticCustomError("misfit", "{expected}", {"expected": expected}), loc=path, input=value
    )


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class OriginSettings(Section):
    """One origin that may be crawled, or a pattern of origins that leads may point to."""

    origin: Annotated[
        Origin,
        Field(
            description="Origin to crawl, or a pattern that admits leads without being crawled.",
            examples=["https://acme.example"],
        ),
    ]
    surfaces: Annotated[tuple[Surface, ...], Field(description="Protocols to look for.")] = (
        "ard",
        "a2a",
        "mcp",
        "madp",
    )
    pages: Annotated[
        tuple[PagePath, ...],
        Field(description="Pages read for links and in-page markup."),
    ] = ("/",)
    artifact_hosts: Annotated[
        tuple[HostPattern, ...],
        Field(description="Further hosts that documents of this origin may be fetched from."),
    ] = ()
    min_interval: Annotated[
        Duration | None, Field(description="Never revisit sooner; unset: `crawl.min_interval`.", examples=["5m"])
    ] = None
    max_interval: Annotated[
        Duration | None, Field(description="Never wait longer; unset: `crawl.max_interval`.", examples=["7d"])
    ] = None

    @property
    def is_pattern(self) -> bool:
        return "://*." in self.origin

    @model_validator(mode="after")
    def _intervals_in_order(self) -> Self:
        if self.min_interval and self.max_interval and self.min_interval > self.max_interval:
            expected = f'at most max_interval, which is "{format_duration(self.max_interval)}"'
            misfit = _misfit(("min_interval",), format_duration(self.min_interval), expected)
            raise ValidationError.from_exception_data("OriginSettings", [misfit])
        return self


class StorageSettings(Section):
    """Where everything is kept."""

    url: Annotated[DatabaseUrl, Field(description="Database: SQLite in one file, or PostgreSQL.")] = (
        "sqlite+aiosqlite:///ardvark.db"
    )
    wait: Annotated[
        Duration, Field(description="How long a daemon that starts waits for a database that does not answer.")
    ] = timedelta(seconds=60)


class ApiSettings(Section):
    """The registry API."""

    listen: Annotated[Listen, Field(description="Address and port of the API server.")] = "127.0.0.1:8080"
    public_url: Annotated[
        HttpUrl | None,
        Field(
            description="Base URL that others reach the API by; unset: made from `api.listen`.",
            examples=["https://registry.example/api/v1/"],
        ),
    ] = None
    identifier: Annotated[
        Identifier | None,
        Field(
            description="Identifier of this registry; unset: made from the host of the public URL.",
            examples=["urn:air:registry.example:registry:public"],
        ),
    ] = None
    display_name: Annotated[NonEmptyStr, Field(description="Name of this registry.")] = "Ardvark registry"
    description: Annotated[NonEmptyStr, Field(description="What this registry offers, in a sentence.")] = (
        "Search over agents, MCP servers and skills, crawled from their publishers' own domains."
    )
    publish_listings: Annotated[
        bool, Field(description="Serve every listing in `/.well-known/ard.json`, not only the registry itself.")
    ] = False
    max_request_size: Annotated[Size, Field(description="Largest request body.")] = 65_536
    max_age: Annotated[Duration, Field(description="How long others may cache an answer.")] = timedelta(seconds=60)
    metrics: Annotated[bool, Field(description="Serve `/metrics` for Prometheus.")] = True


class MetricsSettings(Section):
    """Metrics, health and readiness beside the API, in every role."""

    listen: Annotated[
        Listen | None,
        Field(
            description="Address and port for `/metrics`, `/healthz` and `/readyz` alone; unset: none. The API serves "
            "them at `api.listen` in any case, a crawler or scheduler nowhere else.",
            examples=["127.0.0.1:9464"],
        ),
    ] = None


class NetworkSettings(Section):
    """What may be dialled. Everything that opens a door is closed by default."""

    allow_http: Annotated[bool, Field(description="Fetch origins over plain http where they are listed so.")] = False
    allow_private: Annotated[
        tuple[Network, ...], Field(description="Address ranges to dial although they are not public.")
    ] = ()
    hosts: Annotated[
        dict[HostPattern, Address],
        Field(description="Host names, or patterns of them, that resolve to a fixed address."),
    ] = Field(default_factory=dict)
    extra_ca_file: Annotated[
        ExistingFile | None,
        Field(description="PEM file of further certificate authorities.", examples=["ca.pem"]),
    ] = None
    nameservers: Annotated[
        tuple[Address, ...],
        Field(description="Name servers to ask; empty: those of the system."),
    ] = ()
    connect_timeout: Annotated[Duration, Field(description="Longest wait for a connection, TLS included.")] = timedelta(
        seconds=10
    )
    header_timeout: Annotated[Duration, Field(description="Longest wait from request to response headers.")] = (
        timedelta(seconds=10)
    )
    total_timeout: Annotated[
        Duration, Field(description="Longest time for one fetch, redirects and body included.")
    ] = timedelta(seconds=30)
    max_redirects: Annotated[int, Field(ge=0, le=20, description="Redirects followed for one fetch.")] = 5
    connections: Annotated[int, Field(ge=1, le=10_000, description="Open connections at a time, all origins.")] = 200


class PolitenessSettings(Section):
    """How gently one origin is treated."""

    contact_url: Annotated[
        HttpUrl | None,
        Field(
            description="Page about this crawler, sent in the User-Agent; unset: the base URL of the API.",
            examples=["https://registry.example/crawler"],
        ),
    ] = None
    min_delay: Annotated[Duration, Field(description="Shortest pause between two requests to one origin.")] = timedelta(
        seconds=1
    )
    max_delay: Annotated[Duration, Field(description="Longest `Crawl-delay` of a robots.txt that is honoured.")] = (
        timedelta(hours=6)
    )
    max_retry_after: Annotated[Duration, Field(description="Longest `Retry-After` that is honoured.")] = timedelta(
        hours=24
    )


class CrawlSettings(Section):
    """When origins are visited, and how far a visit goes."""

    visits: Annotated[int, Field(ge=1, le=10_000, description="Visits under way at a time in one process.")] = 100
    min_interval: Annotated[Duration, Field(description="Shortest time between two fetches of one document.")] = (
        timedelta(minutes=5)
    )
    max_interval: Annotated[Duration, Field(description="Longest time between two fetches of one document.")] = (
        timedelta(hours=24)
    )
    budget: Annotated[
        Annotated[int, Field(ge=1)] | None,
        Field(
            description="Requests a day for all origins together, shared out by what each look is worth; "
            "unset: every document is watched as closely as its own changes ask for.",
            examples=[20_000],
        ),
    ] = None
    absent_max_interval: Annotated[
        Duration, Field(description="Longest time between two looks for a document that is not there.")
    ] = timedelta(days=7)
    page_interval: Annotated[Duration, Field(description="Shortest time between two fetches of one HTML page.")] = (
        timedelta(days=1)
    )
    default_freshness: Annotated[
        Duration, Field(description="Freshness of a document that states none and has no date.")
    ] = timedelta(hours=1)
    unconditional_every: Annotated[
        int, Field(ge=2, le=1000, description="After so many 304 answers in a row the whole document is fetched.")
    ] = 20
    unconditional_after: Annotated[
        Duration, Field(description="After so long with only 304 answers the whole document is fetched.")
    ] = timedelta(days=7)
    removal_sightings: Annotated[
        int, Field(ge=1, le=100, description="A manifest must be found missing (404) so often before its entries go.")
    ] = 3
    removal_period: Annotated[
        Duration, Field(description="A manifest must be missing (404) for so long before its entries go.")
    ] = timedelta(hours=24)
    nesting_depth: Annotated[
        int, Field(ge=1, le=16, description="Levels of nested catalogs, the first one included.")
    ] = 4
    max_documents: Annotated[int, Field(ge=1, le=10_000, description="Documents watched for one origin.")] = 64
    max_artifacts: Annotated[
        int, Field(ge=0, le=100_000, description="Cards and other artifacts watched for one origin.")
    ] = 2_000
    list_private: Annotated[
        bool, Field(description="List the entries of manifests whose Cache-Control is `private`.")
    ] = False
    withdraw_on_robots: Annotated[
        bool,
        Field(
            description="Take entries and cards out of the index at once when robots.txt forbids the document they are "
            "from; otherwise they stay, marked as disallowed."
        ),
    ] = True
    lease: Annotated[Duration, Field(description="A claim on an origin ends after this time unless renewed.")] = (
        timedelta(minutes=5)
    )
    shutdown_grace: Annotated[Duration, Field(description="Time that visits get to finish when the daemon stops.")] = (
        timedelta(seconds=15)
    )


class LimitsSettings(Section):
    """Bounds on what a publisher can make us hold."""

    manifest_size: Annotated[Size, Field(description="Largest manifest, decoded.")] = 1_048_576
    page_size: Annotated[Size, Field(description="Part of an HTML page that is read, decoded.")] = 524_288
    robots_size: Annotated[Size, Field(description="Part of a robots.txt that is read, decoded.")] = 512_000
    json_depth: Annotated[int, Field(ge=8, le=256, description="Deepest nesting of a JSON document.")] = 64
    entries: Annotated[int, Field(ge=1, le=1_000_000, description="Entries read from one manifest.")] = 10_000
    string_size: Annotated[Size, Field(description="Longest text of an entry that search shows.")] = 65_536
    links: Annotated[int, Field(ge=1, le=1000, description="Leads taken from one document.")] = 50


class TrustSettings(Section):
    """What an entry must show to be served under its publisher's name."""

    alignment: Annotated[
        Literal["subdomain", "exact", "off"],
        Field(description="How the identity of a trust manifest must match the publisher."),
    ] = "subdomain"


class TrustedKeysSettings(Section):
    """Public keys that the operator vouches for; they count before those that a signature points to."""

    file: Annotated[ExistingFile, Field(description="File with a JSON Web Key Set.", examples=["acme-keys.json"])]
    hosts: Annotated[tuple[HostPattern, ...], Field(description="Hosts whose cards these keys may verify.")] = ("*",)


class OsdSettings(Section):
    """Open Support Discovery: names that its texts leave open, so that the defaults are assumptions of ours."""

    namespace: Annotated[Namespace, Field(description="IRI of the namespace with the prefix `osd:`.")] = (
        "https://opensupportdiscovery.org/ns#"
    )
    contract_version: Annotated[
        NonEmptyStr | None,
        Field(
            description="Contract version asked of registries; an answer that declares another one is discarded. "
            "Unset: any.",
            examples=["1.0"],
        ),
    ] = None
    contract_version_member: Annotated[
        NonEmptyStr, Field(description="Member of a registry's answer that declares its contract version.")
    ] = "contractVersion"


class ProbeSettings(Section):
    """Asking the endpoints that cards advertise, by `ardvark probe` alone: no crawl ever does."""

    enabled: Annotated[bool, Field(description="Let `ardvark probe` ask an MCP endpoint which tools it serves.")] = (
        False
    )
    timeout: Annotated[Duration, Field(description="Longest time for all the requests of one probe.")] = timedelta(
        minutes=1
    )


class SearchSettings(Section):
    """Ranking."""

    min_score: Annotated[int, Field(ge=0, le=100, description="Entries below this score match nothing.")] = 2


class RetentionSettings(Section):
    """How long what was found is kept. What is current is never pruned."""

    fetch_log_age: Annotated[
        Age, Field(description="Lines of the fetch log older than this go; the newest of a document stays.")
    ] = timedelta(days=90)
    fetch_log_per_document: Annotated[
        int, Field(ge=1, le=1_000_000, description="Lines of the fetch log kept for one document.")
    ] = 1_000
    snapshot_age: Annotated[
        Age, Field(description="A body is kept for so long after the last thing that pointed to it.")
    ] = timedelta(days=30)
    version_age: Annotated[
        Age, Field(description="An earlier state of an entry or a card is kept for so long after it was replaced.")
    ] = timedelta(days=365)
    drift_age: Annotated[Age, Field(description="A drift is kept for so long after it closed.")] = timedelta(days=365)
    change_age: Annotated[Age, Field(description="Events of the change feed older than this go.")] = timedelta(days=90)
    changes_kept: Annotated[
        int, Field(ge=1, le=1_000_000_000, description="The newest events of the change feed, kept whatever their age.")
    ] = 10_000
    pending_age: Annotated[
        Age, Field(description="What a visit read and no later one compared is given up after this time.")
    ] = timedelta(days=30)
    max_size: Annotated[
        Size | None,
        Field(
            description="Size of the database above which spare bodies, earlier states, the fetch log and closed drift "
            "go before their time, the oldest first; unset: no limit.",
            examples=["10GiB"],
        ),
    ] = None


class LoggingSettings(Section):
    """Events on standard error."""

    level: Annotated[Literal["debug", "info", "warning", "error"], Field(description="Least severe events shown.")] = (
        "info"
    )
    format: Annotated[
        Literal["auto", "json", "console"], Field(description="`auto`: console on a terminal, JSON otherwise.")
    ] = "auto"


class PeerSettings(Section):
    """Another registry."""

    url: Annotated[
        HttpUrl, Field(description="Base URL of the peer's API.", examples=["https://finder.example/api/v1/"])
    ]
    roles: Annotated[
        tuple[Literal["search", "refer", "mirror"], ...],
        Field(min_length=1, description="What the peer is used for.", examples=[["search", "refer", "mirror"]]),
    ]


class Settings(BaseSettings):
    """All settings of one process."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, validate_default=True
    )

    origins: Annotated[tuple[OriginSettings, ...], Field(description="The allowlist.")] = ()
    storage: StorageSettings = StorageSettings()
    api: ApiSettings = ApiSettings()
    metrics: MetricsSettings = MetricsSettings()
    network: NetworkSettings = NetworkSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    crawl: CrawlSettings = CrawlSettings()
    limits: LimitsSettings = LimitsSettings()
    trust: TrustSettings = TrustSettings()
    trusted_keys: Annotated[
        tuple[TrustedKeysSettings, ...], Field(description="Keys that the operator vouches for.")
    ] = ()
    osd: OsdSettings = OsdSettings()
    probe: ProbeSettings = ProbeSettings()
    search: SearchSettings = SearchSettings()
    retention: RetentionSettings = RetentionSettings()
    logging: LoggingSettings = LoggingSettings()
    peers: Annotated[tuple[PeerSettings, ...], Field(description="Other registries.")] = ()

    @model_validator(mode="after")
    def _origins_fit_together(self) -> Self:
        mistakes = []
        seen: set[str] = set()
        for number, entry in enumerate(self.origins):
            path = ("origins", number, "origin")
            if entry.origin in seen:
                mistakes.append(_misfit(path, entry.origin, "an origin not listed before"))
            seen.add(entry.origin)
            if entry.origin.startswith("http://") and not self.network.allow_http:
                mistakes.append(_misfit(path, entry.origin, "https, or network.allow_http = true"))
        if self.crawl.min_interval > self.crawl.max_interval:
            expected = f'at most crawl.max_interval, which is "{format_duration(self.crawl.max_interval)}"'
            mistakes.append(_misfit(("crawl", "min_interval"), format_duration(self.crawl.min_interval), expected))
        if mistakes:
            raise ValidationError.from_exception_data("Settings", mistakes)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what `config.loading` put together and nothing else."""
        return (init_settings,)

    @property
    def base_url(self) -> str:
        """Base URL of the API, always with one trailing slash."""
        return (self.api.public_url or f"http://{reachable(self.api.listen)}/api/v1").rstrip("/") + "/"

    @property
    def contact_url(self) -> str:
        """Where a publisher can read about this crawler: the setting, else the registry itself."""
        return self.politeness.contact_url or self.base_url
