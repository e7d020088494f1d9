"""Generated JSON: any value at all, and objects that use the names of cards with members of any type."""

from typing import Any

from hypothesis import strategies as st

NAMES = (
    "name description version url skills tags examples id capabilities streaming extensions uri params provider "
    "organization supportedInterfaces supported_interfaces protocolBinding protocol_binding protocolVersion "
    "tenant transport preferredTransport additionalInterfaces securitySchemes apiKeySecurityScheme "
    "oauth2SecurityScheme type in scheme flows security securityRequirements schemes list signatures protected "
    "signature header defaultInputModes defaultOutputModes supportsAuthenticatedExtendedCard authentication "
    "credentials $schema serverInfo title endpoint mcp_version server_name endpoints streamable_http sse remotes "
    "packages registryType identifier headers isRequired supportedProtocolVersions repository tools instructions "
    "protocol trust_anchor rate_limits requests_per_minute input_formats output_formats constellation members "
    "entries apiKey value default password"
).split(" ")
TEXTS = (
    "",
    " ",
    "1.0",
    "0.3.0",
    "0.2",
    "99999999999.1",
    "https://acme.example/a2a",
    "http://[",
    "https://[::1]@",
    "/mcp",
    "{base}/mcp",
    "//",
    "javascript:alert(1)",
    "acme.example/echo",
    "agent-seo/1.0",
    "agent-seo/",
    "GRPC",
    "JSONRPC",
    "text/plain",
    "apiKey",
    "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
    "server.schema.json",
    "Bearer abcdef0123456789",
    "sk-abcdef0123456789abcdef",
    "\ud800",
    "\x00",
)


def anything() -> st.SearchStrategy[Any]:
    """Any JSON value."""
    return st.recursive(_scalars(), lambda inner: st.lists(inner, max_size=4) | _objects(st.text(max_size=8), inner))


def lookalikes() -> st.SearchStrategy[Any]:
    """Objects that look like cards from afar."""
    names = st.sampled_from(NAMES)
    inner = st.recursive(
        _scalars() | st.sampled_from(TEXTS),
        lambda more: st.lists(more, max_size=3) | _objects(names, more),
        max_leaves=12,
    )
    return st.dictionaries(names, inner, max_size=12)


def _scalars() -> st.SearchStrategy[Any]:
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.just(10**400)
    return st.none() | st.booleans() | numbers | st.text(max_size=12)


def _objects(names: st.SearchStrategy[str], inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(names, inner, max_size=5)
