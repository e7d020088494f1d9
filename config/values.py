"""What a value of a setting may be: each type with its check and with what was expected when it fails."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import idna
from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

_ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>(?:\*\.)?[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::(?P<port>\d{1,5}))?/?",
    re.ASCII | re.IGNORECASE,
)
_HOST = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?|\*", re.ASCII | re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


def _origin(value: str) -> str:
    match = _ORIGIN.fullmatch(value)
    host = _host(match["host"].lower()) if match else None
    if match is None or host is None or int(match["port"] or 1) not in range(1, 65536):
        expected = 'an origin, such as "https://acme.example", or a pattern, such as "https://*.corp.example"'
        raise ValueError(expected + _in_ascii(value))
    scheme = match["scheme"].lower()
    port = "" if not match["port"] or int(match["port"]) == _DEFAULT_PORTS[scheme] else f":{int(match['port'])}"
    return f"{scheme}://{host}{port}"


def _in_ascii(value: str) -> str:
    """Add to what was expected how a name in another script is written for the net (IDNA 2008)."""
    scheme, separator, rest = value.rpartition("://")
    name, colon, port = rest.rstrip("/").partition(":")
    if value.isascii():
        return ""
    wildcard = "*." if name.startswith("*.") else ""
    try:
        written = idna.encode(name.removeprefix("*."), uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        return ""
    return f'; this name is written in ASCII as "{scheme}{separator}{wildcard}{written}{colon}{port}"'


def _host(value: str) -> str | None:
    """Write an IPv6 literal in its one canonical form; None for what is no host."""
    if not value.startswith("["):
        return None if ".." in value else value
    try:
        return f"[{ipaddress.IPv6Address(value[1:-1])}]"
    except ValueError:
        return None


def _host_pattern(value: str) -> str:
    if not _HOST.fullmatch(value) or ".." in value:
        raise ValueError('a host name or a pattern, such as "api.acme.example" or "*.example"' + _in_ascii(value))
    return value.lower()


def _http_url(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#@]+(?:[/?][^\s#]*)?", value, re.ASCII):
        raise ValueError('an absolute http or https URL without credentials, such as "https://registry.example/"')
    return value


def _listen(value: str) -> str:
    host, separator, port = value.rpartition(":")
    if not (separator and host and re.fullmatch(r"\d{1,5}", port, re.ASCII) and int(port) < 65536):
        raise ValueError('an address and port to listen on, such as "127.0.0.1:8080" or "[::1]:8080"')
    return value


def reachable(listen: str) -> str:
    """Name an address at which a server can be asked: of one that listens on all of them, loopback."""
    host, _, port = listen.rpartition(":")
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return listen
    if not address.is_unspecified:
        return listen
    return f"[::1]:{port}" if address.version == 6 else f"127.0.0.1:{port}"


def _page(value: str) -> str:
    if not re.fullmatch(r"/[^\s#]*", value) or value.startswith("//"):
        raise ValueError('a path on the origin, such as "/" or "/agents"')
    return value


def _network(value: Any) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(value)
    except ValueError:
        raise ValueError('an address range in CIDR form, such as "127.0.0.0/8" or "10.1.2.3/32"') from None


def _address(value: str) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise ValueError('a literal IP address, such as "127.0.0.1"') from None


def _existing_file(value: Path) -> Path:
    if not value.is_file():
        raise ValueError("an existing file")
    return value


def _database_url(value: str) -> str:
    if not value.startswith(("sqlite+aiosqlite:///", "postgresql+asyncpg://")):
        raise ValueError('"sqlite+aiosqlite:///ardvark.db" or "postgresql+asyncpg://user@host/database"')
    return value


def _identifier(value: str) -> str:
    if not re.fullmatch(r"urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+", value):
        raise ValueError('an ARD identifier, such as "urn:air:registry.example:registry:public"')
    return value


def _namespace(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*:\S*[#/:?]", value, re.ASCII):
        raise ValueError('the IRI of a namespace, such as "https://vocabulary.example/ns#"')
    return value


Origin = Annotated[str, AfterValidator(_origin)]
HostPattern = Annotated[str, AfterValidator(_host_pattern)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
Network = Annotated[
    ipaddress.IPv4Network | ipaddress.IPv6Network,
    BeforeValidator(_network),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string"}),
]
Surface = Literal["ard", "a2a", "mcp", "madp"]
NonEmptyStr = Annotated[str, Field(min_length=1)]
Listen = Annotated[str, AfterValidator(_listen)]
PagePath = Annotated[str, AfterValidator(_page)]
Address = Annotated[str, AfterValidator(_address)]
ExistingFile = Annotated[Path, AfterValidator(_existing_file)]
DatabaseUrl = Annotated[str, AfterValidator(_database_url)]
Identifier = Annotated[str, AfterValidator(_identifier)]
Namespace = Annotated[str, AfterValidator(_namespace)]
