"""What counts as which change of a card or an entry, row by row."""

import base64
import copy
import json
from typing import Any

import pytest

from crawler.surfaces.a2a import Card, read_card
from crawler.surfaces.mcp import read_server_card
from index.diff import (
    ChangeClass,
    Edit,
    Operation,
    apply_edits,
    diff,
    diff_cards,
    diff_entries,
    document_identity,
    entry_identity,
    is_silent,
    same,
    summary,
)

ADD, REMOVE, REPLACE = Operation.ADD, Operation.REMOVE, Operation.REPLACE
GONE = object()

# Class, operation, place and, where there is one, note.
Found = str


def interface(url: str, version: str = "1.0", binding: str = "JSONRPC", **more: str) -> dict[str, str]:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version, **more}


def signature(kid: str = "key-1", jku: str = "https://acme.example/keys", text: str = "c2ln", **more: Any) -> Any:
    header = json.dumps({"alg": "ES256", "kid": kid, "jku": jku, **more}).encode()
    return {"protected": base64.urlsafe_b64encode(header).decode().rstrip("="), "signature": text}


FIRST = interface("https://acme.example/a2a")
SECOND = interface("grpc.acme.example:443", binding="GRPC")
CARD: dict[str, Any] = {
    "name": "Weather",
    "description": "Forecasts for the coast.",
    "version": "1.4.0",
    "provider": {"organization": "Acme", "url": "https://acme.example/about"},
    "iconUrl": "https://acme.example/icon.png",
    "documentationUrl": "https://acme.example/docs",
    "supportedInterfaces": [FIRST, SECOND],
    "capabilities": {
        "streaming": True,
        "pushNotifications": True,
        "extendedAgentCard": True,
        "extensions": [{"uri": "https://acme.example/ext/trace", "required": False, "params": {"level": 1}}],
    },
    "securitySchemes": {
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key", "description": "Ask us."}},
        "login": {
            "oauth2SecurityScheme": {
                "flows": {"clientCredentials": {"tokenUrl": "https://acme.example/token", "scopes": {"read": "Read."}}}
            }
        },
        "2": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
    },
    "securityRequirements": [{"schemes": {"key": {"list": []}}}, {"schemes": {"login": {"list": ["read"]}}}],
    "defaultInputModes": ["text/plain", "application/json"],
    "defaultOutputModes": ["text/plain", "image/png"],
    "skills": [
        {
            "id": "forecast",
            "name": "Forecast",
            "description": "Weather of the next days.",
            "tags": ["weather", "coast"],
            "examples": ["Will it rain?", "How warm is the sea?"],
            "inputModes": ["text/plain", "application/json"],
            "outputModes": ["text/plain", "image/png"],
        },
        {"id": "tides", "name": "Tides", "description": "High and low water.", "tags": ["tides"]},
    ],
    "signatures": [signature()],
}


def altered(card: dict[str, Any], *changes: tuple[str, Any]) -> dict[str, Any]:
    """Copy a card with values put at pointers, or taken out."""
    found = copy.deepcopy(card)
    for pointer, value in changes:
        *parents, last = pointer.split("/")[1:]
        node: Any = found
        for step in parents:
            node = node[int(step)] if isinstance(node, list) else node[step]
        if value is GONE:
            del node[int(last) if isinstance(node, list) else last]
        elif isinstance(node, list):
            node.insert(int(last), value)
        else:
            node[last] = value
    return found


def found_in(edits: list[Edit]) -> list[Found]:
    return [f"{edit.kind} {edit.operation} {edit.pointer} {edit.note}".rstrip() for edit in edits]


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[Edit]:
    """Compare two cards as published."""
    return diff_cards(read_card(old).normal, read_card(new).normal)


def check(edits: list[Edit], expected: list[Found]) -> None:
    assert sorted(found_in(edits)) == sorted(expected)
    kinds = [ChangeClass(found.split()[0]) for found in expected]
    assert summary(edits) == min(kinds, key=list(ChangeClass).index, default=None)


# Each case changes what is published and leaves the version as it was.
CARD_ROWS: list[tuple[str, dict[str, Any], list[tuple[str, Any]], list[Found]]] = [
    ("interface removed", CARD, [("/supportedInterfaces/1", GONE)], ["breaking remove /supportedInterfaces/1"]),
    (
        "preferred interface removed",
        CARD,
        [("/supportedInterfaces/0", GONE)],
        ["breaking remove /supportedInterfaces/0 preferred"],
    ),
    (
        "preferred interface replaced",
        altered(CARD, ("/supportedInterfaces/1", GONE)),
        [("/supportedInterfaces", [interface("https://rest.acme.example", binding="HTTP+JSON")])],
        ["breaking remove /supportedInterfaces/0 preferred", "breaking add /supportedInterfaces/- preferred"],
    ),
    (
        "another interface put first",
        CARD,
        [("/supportedInterfaces/0", interface("https://rest.acme.example", binding="HTTP+JSON"))],
        ["breaking add /supportedInterfaces/- preferred"],
    ),
    (
        "url of the preferred interface changed",
        CARD,
        [("/supportedInterfaces/0/url", "https://new.example/a2a")],
        ["breaking replace /supportedInterfaces/0/url preferred"],
    ),
    (
        "url of another interface changed",
        CARD,
        [("/supportedInterfaces/1/url", "grpc.new.example:443")],
        ["breaking replace /supportedInterfaces/1/url"],
    ),
    (
        "binding of an interface changed",
        CARD,
        [("/supportedInterfaces/1/protocolBinding", "HTTP+JSON")],
        ["breaking replace /supportedInterfaces/1/protocolBinding"],
    ),
    (
        "tenant added",
        CARD,
        [("/supportedInterfaces/1/tenant", "north")],
        ["breaking add /supportedInterfaces/1/tenant"],
    ),
    (
        "tenant changed",
        altered(CARD, ("/supportedInterfaces/1/tenant", "north")),
        [("/supportedInterfaces/1/tenant", "south")],
        ["breaking replace /supportedInterfaces/1/tenant"],
    ),
    (
        "tenant removed",
        altered(CARD, ("/supportedInterfaces/1/tenant", "north")),
        [("/supportedInterfaces/1/tenant", GONE)],
        ["breaking remove /supportedInterfaces/1/tenant"],
    ),
    (
        "only interface raised to a new major version",
        altered(CARD, ("/supportedInterfaces/1", GONE)),
        [("/supportedInterfaces/0/protocolVersion", "2.0")],
        ["breaking replace /supportedInterfaces/0/protocolVersion preferred"],
    ),
    (
        "new major version beside the old one",
        altered(CARD, ("/supportedInterfaces/1", GONE)),
        [("/supportedInterfaces/1", interface("https://acme.example/a2a", "2.0"))],
        ["compatible add /supportedInterfaces/-"],
    ),
    (
        "urls of two like interfaces changed",
        altered(CARD, ("/supportedInterfaces/1", interface("https://two.acme.example/a2a"))),
        [
            ("/supportedInterfaces/0/url", "https://new.example/a2a"),
            ("/supportedInterfaces/1/url", "https://two.new.example/a2a"),
        ],
        [
            "breaking replace /supportedInterfaces/0/url preferred",
            "breaking replace /supportedInterfaces/1/url",
        ],
    ),
    (
        "patch number of a protocol version",
        CARD,
        [("/supportedInterfaces/0/protocolVersion", "1.0.1")],
        ["cosmetic replace /supportedInterfaces/0/protocolVersion"],
    ),
    ("skill removed", CARD, [("/skills/1", GONE)], ["breaking remove /skills/1"]),
    (
        "skill under a new id",
        CARD,
        [("/skills/1/id", "tides-v2")],
        ["breaking remove /skills/1 renamed to tides-v2", "compatible add /skills/-"],
    ),
    ("default input mode removed", CARD, [("/defaultInputModes/0", GONE)], ["breaking remove /defaultInputModes/0"]),
    ("default output mode removed", CARD, [("/defaultOutputModes/1", GONE)], ["breaking remove /defaultOutputModes/1"]),
    (
        "input mode of a skill removed",
        CARD,
        [("/skills/0/inputModes/1", GONE)],
        ["breaking remove /skills/0/inputModes/1"],
    ),
    (
        "output mode of a skill removed",
        CARD,
        [("/skills/0/outputModes/0", GONE)],
        ["breaking remove /skills/0/outputModes/0"],
    ),
    (
        "a skill narrows the modes of the card",
        CARD,
        [("/skills/1/inputModes", ["text/plain"])],
        ["breaking add /skills/1/inputModes"],
    ),
    (
        "a skill states more than the modes of the card",
        CARD,
        [("/skills/1/inputModes", ["text/plain", "application/json", "audio/wav"])],
        ["compatible add /skills/1/inputModes"],
    ),
    (
        "a skill keeps the modes of the card when that gains one",
        CARD,
        [
            ("/defaultInputModes/2", "audio/wav"),
            ("/skills/1/inputModes", ["text/plain", "application/json"]),
        ],
        ["compatible add /defaultInputModes/-", "compatible add /skills/1/inputModes"],
    ),
    (
        "a skill falls back to the same modes of the card",
        CARD,
        [("/skills/0/inputModes", GONE)],
        ["compatible remove /skills/0/inputModes"],
    ),
    (
        "a skill falls back to fewer modes of the card",
        altered(CARD, ("/skills/0/inputModes", ["audio/wav"])),
        [("/skills/0/inputModes", GONE)],
        ["breaking remove /skills/0/inputModes"],
    ),
    (
        "mode repeated before",
        altered(CARD, ("/defaultInputModes", ["text/plain", "text/plain"])),
        [("/defaultInputModes", ["text/plain"])],
        ["cosmetic remove /defaultInputModes/1 repeat"],
    ),
    (
        "requirement where none was",
        altered(CARD, ("/securityRequirements", GONE)),
        [("/securityRequirements", [{"schemes": {"key": {"list": []}}}])],
        ["breaking add /securityRequirements"],
    ),
    (
        "requirement where none was, beside none",
        altered(CARD, ("/securityRequirements", GONE)),
        [("/securityRequirements", [{"schemes": {"key": {"list": []}}}, {"schemes": {}}])],
        ["compatible add /securityRequirements"],
    ),
    (
        "requirement of a skill where none was",
        CARD,
        [("/skills/1/securityRequirements", [{"schemes": {"key": {"list": []}}}])],
        ["breaking add /skills/1/securityRequirements"],
    ),
    ("requirements all gone", CARD, [("/securityRequirements", GONE)], ["compatible remove /securityRequirements"]),
    ("alternative removed", CARD, [("/securityRequirements/0", GONE)], ["breaking remove /securityRequirements/0"]),
    (
        "alternative added",
        CARD,
        [("/securityRequirements/2", {"schemes": {"2": {"list": []}}})],
        ["compatible add /securityRequirements/-"],
    ),
    (
        "a further scheme demanded in an alternative",
        CARD,
        [("/securityRequirements/0/schemes/2", {"list": []})],
        ["breaking remove /securityRequirements/0", "compatible add /securityRequirements/-"],
    ),
    (
        "scope added",
        CARD,
        [("/securityRequirements/1/schemes/login/list/1", "write")],
        ["breaking add /securityRequirements/1/login/-"],
    ),
    (
        "scope removed",
        CARD,
        [("/securityRequirements/1/schemes/login/list/0", GONE)],
        ["compatible remove /securityRequirements/1/login/0"],
    ),
    (
        "scheme of another type",
        CARD,
        [("/securitySchemes/key", {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://acme.example/oidc"}})],
        [
            "breaking replace /securitySchemes/key/kind",
            "breaking remove /securitySchemes/key/location",
            "breaking remove /securitySchemes/key/name",
            "cosmetic remove /securitySchemes/key/description",
            "breaking add /securitySchemes/key/openIdConnectUrl",
        ],
    ),
    (
        "location of a key",
        CARD,
        [("/securitySchemes/key/apiKeySecurityScheme/location", "query")],
        ["breaking replace /securitySchemes/key/location"],
    ),
    (
        "name of a key",
        CARD,
        [("/securitySchemes/key/apiKeySecurityScheme/name", "X-Other")],
        ["breaking replace /securitySchemes/key/name"],
    ),
    (
        "scheme of an HTTP scheme whose name is a number",
        CARD,
        [("/securitySchemes/2/httpAuthSecurityScheme/scheme", "Basic")],
        ["breaking replace /securitySchemes/2/scheme"],
    ),
    (
        "url of a flow",
        CARD,
        [("/securitySchemes/login/oauth2SecurityScheme/flows/clientCredentials/tokenUrl", "https://new.example/token")],
        ["breaking replace /securitySchemes/login/flows/clientCredentials/tokenUrl"],
    ),
    (
        "scope no longer on offer",
        CARD,
        [("/securitySchemes/login/oauth2SecurityScheme/flows/clientCredentials/scopes/read", GONE)],
        ["breaking remove /securitySchemes/login/flows/clientCredentials/scopes/read"],
    ),
    (
        "scope on offer",
        CARD,
        [("/securitySchemes/login/oauth2SecurityScheme/flows/clientCredentials/scopes/write", "Write.")],
        ["compatible add /securitySchemes/login/flows/clientCredentials/scopes/write"],
    ),
    ("scheme added", CARD, [("/securitySchemes/3", {"mtlsSecurityScheme": {}})], ["compatible add /securitySchemes/3"]),
    ("scheme removed", CARD, [("/securitySchemes/2", GONE)], ["breaking remove /securitySchemes/2"]),
    (
        "description of a scheme",
        CARD,
        [("/securitySchemes/key/apiKeySecurityScheme/description", "Write to us.")],
        ["cosmetic replace /securitySchemes/key/description"],
    ),
    *(
        (f"{name} {before} to {after}", altered(CARD, (f"/capabilities/{name}", before)), [change], expected)
        for name in ("streaming", "pushNotifications", "extendedAgentCard")
        for before, after, change, expected in (
            (True, False, (f"/capabilities/{name}", False), [f"breaking replace /capabilities/{name}"]),
            (True, "absent", (f"/capabilities/{name}", GONE), [f"breaking remove /capabilities/{name}"]),
            (False, True, (f"/capabilities/{name}", True), [f"compatible replace /capabilities/{name}"]),
            (False, "absent", (f"/capabilities/{name}", GONE), [f"cosmetic remove /capabilities/{name}"]),
        )
    ),
    (
        "required extension added",
        CARD,
        [("/capabilities/extensions/1", {"uri": "https://acme.example/ext/pay", "required": True})],
        ["breaking add /capabilities/extensions/-"],
    ),
    (
        "first extensions, a required one among them",
        altered(CARD, ("/capabilities/extensions", GONE)),
        [("/capabilities/extensions", [{"uri": "urn:a"}, {"uri": "urn:b", "required": True}])],
        ["breaking add /capabilities/extensions"],
    ),
    (
        "optional extension added",
        CARD,
        [("/capabilities/extensions/1", {"uri": "https://acme.example/ext/pay"})],
        ["compatible add /capabilities/extensions/-"],
    ),
    (
        "extension becomes required",
        CARD,
        [("/capabilities/extensions/0/required", True)],
        ["breaking replace /capabilities/extensions/0/required"],
    ),
    (
        "extension under a new uri",
        CARD,
        [("/capabilities/extensions/0/uri", "https://acme.example/ext/trace/v2")],
        ["breaking remove /capabilities/extensions/0", "compatible add /capabilities/extensions/-"],
    ),
    (
        "parameters of an extension",
        CARD,
        [("/capabilities/extensions/0/params/level", 2)],
        ["behavioural replace /capabilities/extensions/0/params/level"],
    ),
    (
        "organization of the provider",
        CARD,
        [("/provider/organization", "Evil")],
        ["security replace /provider/organization"],
    ),
    (
        "host of the provider",
        CARD,
        [("/provider/url", "https://acme.example@evil.example/about")],
        ["security replace /provider/url"],
    ),
    (
        "page of the provider",
        CARD,
        [("/provider/url", "https://ACME.example.?page=/about")],
        ["cosmetic replace /provider/url"],
    ),
    ("provider gone", CARD, [("/provider", GONE)], ["security remove /provider"]),
    ("signatures vanished", CARD, [("/signatures", GONE)], ["security remove /signatures"]),
    (
        "signing key changed",
        CARD,
        [("/signatures", [signature("key-2")])],
        ["security remove /signatures/0", "security add /signatures/-"],
    ),
    (
        "host of the signing keys changed",
        CARD,
        [("/signatures", [signature(jku="https://evil.example/keys")])],
        ["security remove /signatures/0", "security add /signatures/-"],
    ),
    (
        "algorithm of the signature changed",
        CARD,
        [("/signatures", [signature(alg="HS256")])],
        ["security remove /signatures/0", "security add /signatures/-"],
    ),
    (
        "signature that cannot be read",
        CARD,
        [("/signatures", [{"protected": "%%%", "signature": "x"}])],
        ["security remove /signatures/0", "security add /signatures/-"],
    ),
    (
        "signed anew with the same key",
        CARD,
        [("/signatures", [signature(text="b3RoZXI", iat=1)])],
        ["version_only remove /signatures/0 resigned", "version_only add /signatures/- resigned"],
    ),
    ("signed by a second key as well", CARD, [("/signatures/1", signature("key-2"))], ["compatible add /signatures/-"]),
    (
        "signed for the first time",
        altered(CARD, ("/signatures", GONE)),
        [("/signatures", [signature()])],
        ["compatible add /signatures"],
    ),
    (
        "order of interfaces",
        CARD,
        [("/supportedInterfaces", [SECOND, FIRST])],
        ["behavioural replace /supportedInterfaces order"],
    ),
    (
        "order of interfaces with a new one",
        CARD,
        [("/supportedInterfaces", [SECOND, FIRST, interface("https://rest.acme.example", binding="HTTP+JSON")])],
        ["compatible add /supportedInterfaces/-", "behavioural replace /supportedInterfaces order"],
    ),
    ("skill added", CARD, [("/skills/0", {"id": "wind", "name": "Wind"})], ["compatible add /skills/-"]),
    ("tag added", CARD, [("/skills/0/tags/0", "sea")], ["compatible add /skills/0/tags/-"]),
    ("example added", CARD, [("/skills/0/examples/0", "Fog?")], ["compatible add /skills/0/examples/-"]),
    ("mode added", CARD, [("/defaultInputModes/0", "audio/wav")], ["compatible add /defaultInputModes/-"]),
    (
        "mode of a skill added",
        CARD,
        [("/skills/0/outputModes/0", "audio/wav")],
        ["compatible add /skills/0/outputModes/-"],
    ),
    (
        "interface added behind",
        CARD,
        [("/supportedInterfaces/2", interface("https://rest.acme.example", binding="HTTP+JSON"))],
        ["compatible add /supportedInterfaces/-"],
    ),
    ("name", CARD, [("/name", "Weather!")], ["cosmetic replace /name"]),
    ("description", CARD, [("/description", "Forecasts.")], ["cosmetic replace /description"]),
    ("icon", CARD, [("/iconUrl", "https://acme.example/new.png")], ["cosmetic replace /iconUrl"]),
    ("documentation", CARD, [("/documentationUrl", GONE)], ["cosmetic remove /documentationUrl"]),
    ("name of a skill", CARD, [("/skills/1/name", "Tide")], ["cosmetic replace /skills/1/name"]),
    ("description of a skill", CARD, [("/skills/1/description", "Water.")], ["cosmetic replace /skills/1/description"]),
    ("example removed", CARD, [("/skills/0/examples/1", GONE)], ["cosmetic remove /skills/0/examples/1"]),
    ("tag removed", CARD, [("/skills/0/tags/1", GONE)], ["search remove /skills/0/tags/1"]),
    ("all tags removed", CARD, [("/skills/0/tags", GONE)], ["search remove /skills/0/tags"]),
    ("version", CARD, [("/version", "1.4.1")], ["version_only replace /version"]),
    ("order of skills", CARD, [("/skills", CARD["skills"][::-1])], []),
    ("order of tags", CARD, [("/skills/0/tags", ["coast", "weather"])], []),
    ("order of modes", CARD, [("/defaultInputModes", ["application/json", "text/plain"])], []),
    (
        "order of scopes",
        altered(CARD, ("/securityRequirements/1/schemes/login/list", ["read", "write"])),
        [("/securityRequirements/1/schemes/login/list", ["write", "read"])],
        [],
    ),
    ("order of alternatives", CARD, [("/securityRequirements", CARD["securityRequirements"][::-1])], []),
    ("unknown member", CARD, [("/x-build", 17)], []),
]


@pytest.mark.parametrize(("old", "changes", "expected"), [row[1:] for row in CARD_ROWS], ids=[r[0] for r in CARD_ROWS])
def test_every_change_of_a_card_has_its_class_place_and_note(
    old: dict[str, Any], changes: list[tuple[str, Any]], expected: list[Found]
) -> None:
    new = altered(old, *changes)
    edits = differences(old, new)
    check(edits, expected)
    content = [found for found in expected if not found.startswith("version_only")]
    assert is_silent(edits) is bool(content)
    with_version = differences(old, altered(new, ("/version", "2.0.0")))
    assert not is_silent(with_version)
    assert summary(with_version) is (summary(edits) or ChangeClass.VERSION_ONLY)


@pytest.mark.parametrize("row", CARD_ROWS, ids=[row[0] for row in CARD_ROWS])
def test_the_edits_of_a_card_lead_from_the_old_to_the_new(
    row: tuple[str, dict[str, Any], list[tuple[str, Any]], list[Found]],
) -> None:
    old, new = read_card(row[1]).normal, read_card(altered(row[1], *row[2])).normal
    left = diff_cards(apply_edits(old, diff_cards(old, new)), new)
    assert [edit for edit in left if edit.note != "order"] == []


def test_formatting_and_member_order_are_no_change() -> None:
    turned = {name: CARD[name] for name in reversed(CARD)}
    assert differences(CARD, json.loads(json.dumps(turned, indent=4))) == []


def test_a_new_version_with_a_new_signature_is_version_only() -> None:
    new = altered(CARD, ("/version", "1.5.0"), ("/signatures", [signature(text="bmV3")]))
    edits = differences(CARD, new)
    assert summary(edits) is ChangeClass.VERSION_ONLY
    assert not is_silent(edits)


def test_nothing_changed_has_no_class_and_is_not_silent() -> None:
    assert differences(CARD, CARD) == []
    assert summary([]) is None
    assert not is_silent([])


# --- older versions ---------------------------------------------------------------------------------------------------

OLD_CARD: dict[str, Any] = {
    "protocolVersion": "0.3.0",
    "name": "Weather",
    "description": "Forecasts for the coast.",
    "version": "1.4.0",
    "url": "https://acme.example/a2a",
    "preferredTransport": "JSONRPC",
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    "security": [{"key": []}],
    "skills": [{"id": "tides", "name": "Tides", "description": "High and low water.", "tags": ["tides"]}],
}
NEW_CARD: dict[str, Any] = {
    "name": "Weather",
    "description": "Forecasts for the coast.",
    "version": "1.4.0",
    "supportedInterfaces": [interface("https://acme.example/a2a")],
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}},
    "securityRequirements": [{"schemes": {"key": {"list": []}}}],
    "skills": OLD_CARD["skills"],
}
HYBRID = {**NEW_CARD, **{name: OLD_CARD[name] for name in ("protocolVersion", "url", "preferredTransport")}}


def compared(old: dict[str, Any], new: dict[str, Any]) -> list[Edit]:
    """Compare two cards as the store does."""
    before, after = read_card(old), read_card(new)
    return diff_cards(
        before.normal, after.normal, legacy_dropped=dropped(before, after), legacy=after.legacy_interfaces
    )


def dropped(before: Card, after: Card) -> bool:
    return bool(before.legacy_interfaces) and not after.legacy_interfaces


def test_an_old_card_replaced_by_a_new_one_differs_in_its_interface_alone() -> None:
    check(compared(OLD_CARD, NEW_CARD), ["breaking replace /supportedInterfaces/0/protocolVersion preferred"])


def test_a_hybrid_without_its_older_block_breaks_old_clients() -> None:
    edits = compared(HYBRID, NEW_CARD)
    check(edits, ["breaking remove /url legacy_dropped"])
    assert is_silent(edits)


def test_an_old_card_that_becomes_a_hybrid_breaks_nobody() -> None:
    check(
        compared(OLD_CARD, HYBRID),
        ["compatible remove /supportedInterfaces/0 legacy", "compatible add /supportedInterfaces/-"],
    )


def test_a_card_that_gains_an_older_block_is_the_same_card() -> None:
    assert compared(NEW_CARD, HYBRID) == []


# --- server cards -----------------------------------------------------------------------------------------------------

REMOTE = {
    "type": "streamable-http",
    "url": "https://mcp.acme.example/mcp",
    "headers": [{"name": "X-Region"}],
    "supportedProtocolVersions": ["2025-03-26", "2025-06-18"],
}
SERVER: dict[str, Any] = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
    "name": "example.acme/weather",
    "title": "Weather",
    "version": "1.0.0",
    "description": "Forecasts.",
    "websiteUrl": "https://acme.example",
    "remotes": [REMOTE, {"type": "sse", "url": "https://mcp.acme.example/sse"}],
}
OLD_SERVER: dict[str, Any] = {
    "serverInfo": {"name": "weather", "title": "Weather", "version": "1.0.0"},
    "protocolVersion": "2025-06-18",
    "description": "Forecasts.",
    "transport": {"type": "streamable-http", "endpoint": "/mcp"},
    "authentication": {"required": False, "schemes": ["bearer", "oauth2"]},
    "instructions": "Ask for a place.",
    "tools": [{"name": "forecast", "description": "Next days."}, "tides"],
}
SERVER_ROWS: list[tuple[str, dict[str, Any], list[tuple[str, Any]], list[Found]]] = [
    ("remote removed", SERVER, [("/remotes/1", GONE)], ["breaking remove /remotes/1"]),
    (
        "url of a remote changed",
        SERVER,
        [("/remotes/0/url", "https://new.example/mcp")],
        ["breaking replace /remotes/0/url"],
    ),
    ("transport of a remote changed", SERVER, [("/remotes/0/type", "sse")], ["breaking replace /remotes/0/type"]),
    (
        "remote added",
        SERVER,
        [("/remotes/0", {"type": "sse", "url": "https://two.example/sse"})],
        ["compatible add /remotes/-"],
    ),
    ("order of remotes", SERVER, [("/remotes", SERVER["remotes"][::-1])], []),
    (
        "protocol version dropped",
        SERVER,
        [("/remotes/0/supportedProtocolVersions/0", GONE)],
        ["breaking remove /remotes/0/supportedProtocolVersions/0", "breaking remove /protocolVersions/0"],
    ),
    (
        "protocol version added",
        SERVER,
        [("/remotes/0/supportedProtocolVersions/0", "2026-01-01")],
        ["compatible add /remotes/0/supportedProtocolVersions/-", "compatible add /protocolVersions/-"],
    ),
    (
        "required header added",
        SERVER,
        [("/remotes/0/headers/1", {"name": "X-Key", "isRequired": True})],
        ["breaking add /remotes/0/headers/X-Key"],
    ),
    (
        "required header where no headers were",
        SERVER,
        [("/remotes/1/headers", [{"name": "X-Key", "isRequired": True}])],
        ["breaking add /remotes/1/headers"],
    ),
    (
        "optional header added",
        SERVER,
        [("/remotes/0/headers/1", {"name": "X-Trace"})],
        ["compatible add /remotes/0/headers/X-Trace"],
    ),
    (
        "header becomes required",
        SERVER,
        [("/remotes/0/headers/0/isRequired", True)],
        ["breaking replace /remotes/0/headers/X-Region"],
    ),
    ("header removed", SERVER, [("/remotes/0/headers", GONE)], ["compatible remove /remotes/0/headers"]),
    ("name of the server", SERVER, [("/name", "example.acme/sky")], ["cosmetic replace /name"]),
    ("title", SERVER, [("/title", "Sky")], ["cosmetic replace /title"]),
    ("website", SERVER, [("/websiteUrl", "https://acme.example/sky")], ["cosmetic replace /websiteUrl"]),
    ("authentication demanded", OLD_SERVER, [("/authentication/required", True)], ["breaking replace /authRequired"]),
    (
        "authentication demanded where nothing was said",
        altered(OLD_SERVER, ("/authentication", GONE)),
        [("/authentication", {"required": True})],
        ["breaking add /authRequired"],
    ),
    (
        "authentication no longer demanded",
        altered(OLD_SERVER, ("/authentication/required", True)),
        [("/authentication", GONE)],
        ["compatible remove /authRequired", "compatible remove /authSchemes"],
    ),
    (
        "way to authenticate removed",
        OLD_SERVER,
        [("/authentication/schemes/1", GONE)],
        ["breaking remove /authSchemes/1"],
    ),
    (
        "way to authenticate added",
        OLD_SERVER,
        [("/authentication/schemes/0", "mtls")],
        ["compatible add /authSchemes/-"],
    ),
    ("tool removed", OLD_SERVER, [("/tools/1", GONE)], ["breaking remove /tools/1"]),
    ("last tools removed", OLD_SERVER, [("/tools", [])], ["breaking remove /tools/1", "breaking remove /tools/0"]),
    ("tool added", OLD_SERVER, [("/tools/0", "wind")], ["compatible add /tools/-"]),
    ("tools no longer listed", OLD_SERVER, [("/tools", "dynamic")], ["behavioural remove /tools"]),
    ("text of a tool", OLD_SERVER, [("/tools/0/description", "A week.")], ["cosmetic replace /tools/0/description"]),
    ("instructions", OLD_SERVER, [("/instructions", "Ask twice.")], ["behavioural replace /instructions"]),
    (
        "the one protocol version replaced",
        OLD_SERVER,
        [("/protocolVersion", "2026-01-01")],
        ["breaking remove /protocolVersions/0", "compatible add /protocolVersions/-"],
    ),
    ("endpoint moved", OLD_SERVER, [("/transport/endpoint", "/v2/mcp")], ["breaking replace /remotes/0/url"]),
    ("endpoint written in full", OLD_SERVER, [("/transport/endpoint", "https://acme.example/mcp")], []),
]


@pytest.mark.parametrize(
    ("old", "changes", "expected"), [row[1:] for row in SERVER_ROWS], ids=[row[0] for row in SERVER_ROWS]
)
def test_every_change_of_a_server_card_has_its_class_and_place(
    old: dict[str, Any], changes: list[tuple[str, Any]], expected: list[Found]
) -> None:
    place = "https://acme.example/.well-known/mcp.json"
    before = read_server_card(old, place).normal
    after = read_server_card(altered(old, *changes), place).normal
    edits = diff_cards(before, after)
    check(edits, expected)
    assert is_silent(edits) is bool(expected)
    assert diff_cards(apply_edits(before, edits), after) == []


def test_the_version_of_a_server_alone_is_version_only() -> None:
    before = read_server_card(OLD_SERVER, "https://acme.example/").normal
    after = read_server_card(altered(OLD_SERVER, ("/serverInfo/version", "1.0.1")), "https://acme.example/").normal
    check(diff_cards(before, after), ["version_only replace /version"])


# --- agent files and entries ------------------------------------------------------------------------------------------


def test_a_card_inside_an_agent_file_is_judged_as_a_card() -> None:
    old = {"name": "Weather", "capabilities": ["forecast", "tides"], "card": read_card(CARD).normal}
    moved = altered(CARD, ("/supportedInterfaces/0/url", "https://new.example/a2a"))
    new = {"name": "Weather", "capabilities": ["forecast"], "card": read_card(moved).normal}
    edits = diff_cards(old, new)
    check(edits, ["breaking remove /capabilities/1", "breaking replace /card/supportedInterfaces/0/url preferred"])
    assert same(apply_edits(old, edits), new)


ENTRY: dict[str, Any] = {
    "identifier": "urn:air:acme.example:agents:weather",
    "displayName": "Weather",
    "type": "application/a2a-agent-card+json",
    "url": "https://acme.example/card.json",
    "version": "1.4.0",
    "updatedAt": "2026-10-01T00:00:00Z",
    "description": "Forecasts.",
    "tags": ["weather", "coast"],
    "capabilities": ["forecast"],
    "representativeQueries": ["Will it rain?"],
    "trustManifest": {"identity": "https://acme.example"},
    "metadata": {"region": "north"},
}
ENTRY_ROWS: list[tuple[str, list[tuple[str, Any]], list[Found]]] = [
    ("url", [("/url", "https://new.example/card.json")], ["breaking replace /url"]),
    ("type", [("/type", "application/json")], ["breaking replace /type"]),
    (
        "data in place of the url",
        [("/url", GONE), ("/data", {"name": "Weather"})],
        ["breaking remove /url", "breaking add /data"],
    ),
    ("trust", [("/trustManifest/identity", "https://evil.example")], ["security replace /trustManifest/identity"]),
    ("tag removed", [("/tags/0", GONE)], ["search remove /tags/0"]),
    ("tag added", [("/tags/0", "sea")], ["compatible add /tags/-"]),
    ("order of tags", [("/tags", ["coast", "weather"])], []),
    ("capability removed", [("/capabilities/0", GONE)], ["search remove /capabilities/0"]),
    ("query removed", [("/representativeQueries", GONE)], ["search remove /representativeQueries"]),
    ("name", [("/displayName", "Sky")], ["cosmetic replace /displayName"]),
    ("description", [("/description", "Sky.")], ["cosmetic replace /description"]),
    ("unknown member", [("/metadata/region", "south")], ["behavioural replace /metadata/region"]),
    ("time", [("/updatedAt", "2026-10-02T00:00:00Z")], ["version_only replace /updatedAt"]),
]


@pytest.mark.parametrize(("changes", "expected"), [row[1:] for row in ENTRY_ROWS], ids=[row[0] for row in ENTRY_ROWS])
def test_every_change_of_an_entry_has_its_class_and_place(
    changes: list[tuple[str, Any]], expected: list[Found]
) -> None:
    edits = diff_entries(ENTRY, altered(ENTRY, *changes))
    check(edits, expected)
    assert is_silent(edits) is any(not found.startswith("version_only") for found in expected)


def test_a_card_inside_an_entry_is_judged_as_a_card() -> None:
    old = {"identifier": "urn:air:acme.example:agents:weather", "data": CARD}
    new = altered(old, ("/data/description", "Sky."), ("/data/skills/1", GONE), ("/data/version", "2"))
    check(
        diff_entries(old, new),
        ["cosmetic replace /data/description", "version_only replace /data/version", "breaking remove /data/skills/1"],
    )


def test_entries_of_a_manifest_are_compared_by_identifier_and_version() -> None:
    other = {**ENTRY, "identifier": "urn:air:acme.example:agents:tides"}
    nameless = {"displayName": "No identifier"}
    old = {"entries": [ENTRY, other, nameless]}
    new = {"entries": [nameless, {**other, "tags": ["coast"]}, {**ENTRY, "version": "2"}]}
    edits = diff(old, new, entry_identity)
    assert [(edit.operation, edit.pointer) for edit in edits] == [
        (REMOVE, "/entries/1/tags/0"),
        (REMOVE, "/entries/0"),
        (ADD, "/entries/-"),
    ]


# --- places -----------------------------------------------------------------------------------------------------------


def test_paths_name_items_by_identity_and_members_leave_them_out() -> None:
    old = {"skills": [{"id": "a/b", "n": 1, "tags": ["x"]}], "other": [1], "0": {"-": 1}}
    new = {"skills": [{"id": "a/b", "n": 2, "tags": ["y"]}], "other": [2], "0": {"-": 2}}
    assert [(edit.pointer, edit.members, edit.path) for edit in diff(old, new, document_identity)] == [
        ("/skills/0/n", "/skills/n", "/skills/a~1b/n"),
        ("/skills/0/tags/0", "/skills/tags", "/skills/a~1b/tags/*"),
        ("/skills/0/tags/-", "/skills/tags", "/skills/a~1b/tags/*"),
        ("/other/0", "/other", "/other/*"),
        ("/other/-", "/other", "/other/*"),
        ("/0/-", "/0/-", "/0/-"),
    ]


def test_a_long_identity_is_cut_in_paths_and_still_told_from_others() -> None:
    names = ["n" * 5000 + end for end in "ab"]
    old, new = ({"skills": [{"id": name, "n": number} for name in names]} for number in (1, 2))
    paths = [edit.path for edit in diff(old, new, document_identity)]
    assert len(set(paths)) == 2
    assert all(len(path) < 100 for path in paths)


def test_like_interfaces_that_moved_are_paired_in_their_order() -> None:
    hosts = ["one", "two", "three"]
    old, new = (
        altered(CARD, ("/supportedInterfaces", [interface(f"https://{host}.{zone}") for host in hosts]))
        for zone in ("old.example", "new.example")
    )
    assert [(edit.old, edit.new) for edit in sorted(differences(old, new), key=lambda edit: edit.pointer)] == [
        (f"https://{host}.old.example", f"https://{host}.new.example") for host in hosts
    ]


def test_an_edit_made_from_a_pointer_alone_has_a_guessed_path() -> None:
    edit = Edit(REPLACE, "/skills/3/description", "a", "b")
    assert (edit.members, edit.path) == ("/skills/description", "/skills/*/description")
