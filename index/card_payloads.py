"""The bytes that a signature of an agent card may cover, by who wrote them (A2A 8.4.1, protocol notes 3.5). Pure.

Signers differ, so several forms of one card are tried in order. All of them begin with the card as the strict gate
parsed it, integers as such and other numbers as the doubles they mean, and only its top-level `signatures` taken out.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import rfc8785

from index.records import pointer_step

SIGNATURES = "signatures"
_MOST_UNSIGNED = 50
_LONGEST_POINTER = 200


class Profile(StrEnum):
    """Whose rule the signed bytes follow: the specification's, none, the SDKs', or that of older SDKs, which escape."""

    SPEC = "spec"
    RAW = "raw"
    SDK = "sdk"
    ESCAPED = "escaped"


@dataclass(frozen=True, slots=True)
class Payload:
    """Bytes that may have been signed, and the places of the card that they leave out."""

    profile: Profile
    body: bytes
    unsigned: tuple[str, ...] = ()


class OutOfDomain(ValueError):
    """A number that has no canonical form (RFC 8785 3.2.2.3)."""


class _NotTheSchema(ValueError):
    """The card is not what a reader of the schema would take, so no such reader wrote it."""


class Payloads:
    """A card in every form that may have been signed, each written when it is first asked for.

    Of forms with the same bytes the first one counts. `complete` turns false where a form could not be written because
    of a number without canonical form.
    """

    def __init__(self, card: Mapping[str, Any]) -> None:
        self.complete = True
        self._bare = {name: member for name, member in card.items() if name != SIGNATURES}
        self._written: dict[bytes, Payload] = {}
        self._waiting = iter(_FORMS)

    def __iter__(self) -> Iterator[Payload]:
        known = list(self._written.values())
        yield from known
        for profile, form in self._waiting:
            for payload in self._write(profile, form):
                if payload.body not in self._written:
                    self._written[payload.body] = payload
                    yield payload

    def _write(self, profile: Profile, form: "_Form") -> list[Payload]:
        try:
            return [Payload(profile, body, unsigned) for body, unsigned in form(self._bare)]
        except OutOfDomain:
            self.complete = False
        except _NotTheSchema:
            pass
        return []


# --- bytes ------------------------------------------------------------------------------------------------------------


def jcs(value: Any) -> bytes:
    """Write a value in canonical form (RFC 8785); raises OutOfDomain."""
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise OutOfDomain(str(error)) from None


def _python_json(value: Any) -> bytes:
    """Write what `json.dumps` of Python does: escapes, keys in the order of code points."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


# --- the schema of A2A 1.0 --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Field:
    """A member by the schema: `kind` is text, bool, struct or the name of a message, `many` is list, map or nothing.

    `presence` is `!` for REQUIRED, `?` for optional, empty for members whose default says the same as their absence.
    """

    kind: str
    many: str
    presence: str


_FIELD = re.compile(r"(\w+)([!?]?)(?::(\[|\{)?(\w*)[\]}]?)?")
# Members of each message: `!` REQUIRED, `?` optional; after the colon the type, a [list] or a {map} of it, else text.
_SCHEMA_TEXT = {
    "AgentCard": "name! description! supportedInterfaces!:[AgentInterface] provider:AgentProvider version! "
    "documentationUrl? capabilities!:AgentCapabilities securitySchemes:{SecurityScheme} "
    "securityRequirements:[SecurityRequirement] defaultInputModes!:[text] defaultOutputModes!:[text] "
    "skills!:[AgentSkill] iconUrl?",
    "AgentInterface": "url! protocolBinding! tenant protocolVersion!",
    "AgentProvider": "url! organization!",
    "AgentCapabilities": "streaming?:bool pushNotifications?:bool extensions:[AgentExtension] extendedAgentCard?:bool",
    "AgentExtension": "uri description required:bool params:struct",
    "AgentSkill": "id! name! description! tags!:[text] examples:[text] inputModes:[text] outputModes:[text] "
    "securityRequirements:[SecurityRequirement]",
    "SecurityRequirement": "schemes:{StringList}",
    "StringList": "list:[text]",
    "SecurityScheme": "apiKeySecurityScheme:APIKeySecurityScheme httpAuthSecurityScheme:HTTPAuthSecurityScheme "
    "oauth2SecurityScheme:OAuth2SecurityScheme openIdConnectSecurityScheme:OpenIdConnectSecurityScheme "
    "mtlsSecurityScheme:MutualTlsSecurityScheme",
    "APIKeySecurityScheme": "description location! name!",
    "HTTPAuthSecurityScheme": "description scheme! bearerFormat",
    "OAuth2SecurityScheme": "description flows!:OAuthFlows oauth2MetadataUrl",
    "OpenIdConnectSecurityScheme": "description openIdConnectUrl!",
    "MutualTlsSecurityScheme": "description",
    "OAuthFlows": "authorizationCode:AuthorizationCodeOAuthFlow clientCredentials:ClientCredentialsOAuthFlow "
    "implicit:ImplicitOAuthFlow password:PasswordOAuthFlow deviceCode:DeviceCodeOAuthFlow",
    "AuthorizationCodeOAuthFlow": "authorizationUrl! tokenUrl! refreshUrl scopes!:{text} pkceRequired:bool",
    "ClientCredentialsOAuthFlow": "tokenUrl! refreshUrl scopes!:{text}",
    "ImplicitOAuthFlow": "authorizationUrl refreshUrl scopes:{text}",
    "PasswordOAuthFlow": "tokenUrl refreshUrl scopes:{text}",
    "DeviceCodeOAuthFlow": "deviceAuthorizationUrl! tokenUrl! refreshUrl scopes!:{text}",
}


def _fields(text: str) -> dict[str, _Field]:
    found = {}
    for match in _FIELD.finditer(text):
        name, presence, many, kind = match.groups()
        found[name] = _Field(kind or "text", {"[": "list", "{": "map"}.get(many or "", ""), presence)
    return found


SCHEMA: Mapping[str, Mapping[str, _Field]] = {name: _fields(text) for name, text in _SCHEMA_TEXT.items()}
_CAMEL: Mapping[str, str] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): name for fields in SCHEMA.values() for name in fields
}


# --- (a) the rule of the specification ------------------------------------------------------------------------------


def _spec_forms(card: Mapping[str, Any]) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    """Leave defaults out; of an object that is there and empty the text does not say whether it is one."""
    for keeps_empty in (True, False):
        yield jcs(_without_defaults(card, SCHEMA["AgentCard"], keeps_empty)), ()


def _without_defaults(value: Any, fields: Mapping[str, _Field], keeps_empty: bool) -> Any:
    if not isinstance(value, Mapping):
        return value
    found = {}
    for name, member in value.items():
        known = fields.get(name)
        if known is None:
            found[name] = member
            continue
        inner = _spec_member(member, known, keeps_empty)
        is_message = not known.many and known.kind in SCHEMA
        stays = known.presence or (keeps_empty and is_message and inner == {})
        if stays or not _is_default(inner):
            found[name] = inner
    return found


def _spec_member(member: Any, known: _Field, keeps_empty: bool) -> Any:
    fields = SCHEMA.get(known.kind)
    if fields is None:
        return member
    if known.many == "list" and isinstance(member, list):
        return [_without_defaults(item, fields, keeps_empty) for item in member]
    if known.many == "map" and isinstance(member, Mapping):
        return {name: _without_defaults(item, fields, keeps_empty) for name, item in member.items()}
    return member if known.many else _without_defaults(member, fields, keeps_empty)


def _is_default(value: Any) -> bool:
    return value is None or value in ("", [], {}, 0)  # false is 0 as well


# --- (b) the card as it stands ----------------------------------------------------------------------------------------


def _raw_form(card: Mapping[str, Any]) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    yield jcs(card), ()


# --- (c), (d) what the SDKs make of it --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Reading:
    """A card read by the schema, with the places of what the schema doesn't know."""

    unsigned: list[str] = field(default_factory=list)

    def message(self, value: Any, fields: Mapping[str, _Field], place: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _NotTheSchema(place)
        found: dict[str, Any] = {}
        for name, member in value.items():
            known_as = name if name in fields else _CAMEL.get(name, "")
            if known_as not in fields:
                self._leave_out(place + pointer_step(name))
            elif member is not None:
                if known_as in found:
                    raise _NotTheSchema(place)
                self._put(found, known_as, fields[known_as], member, place + pointer_step(name))
        return found

    def _leave_out(self, place: str) -> None:
        if len(self.unsigned) < _MOST_UNSIGNED:
            self.unsigned.append(place[:_LONGEST_POINTER])

    def _put(self, found: dict[str, Any], name: str, known: _Field, member: Any, place: str) -> None:
        if known.many == "list":
            if not isinstance(member, list):
                raise _NotTheSchema(place)
            items = enumerate(member)
            found[name] = [self._one(item, known.kind, place + pointer_step(index)) for index, item in items]
        elif known.many == "map":
            if not isinstance(member, Mapping):
                raise _NotTheSchema(place)
            pairs = member.items()
            found[name] = {key: self._one(item, known.kind, place + pointer_step(key)) for key, item in pairs}
        else:
            one = self._one(member, known.kind, place)
            # A flag without presence that is false is not written.
            if known.presence == "?" or one is not False:
                found[name] = one

    def _one(self, value: Any, kind: str, place: str) -> Any:
        if kind in SCHEMA:
            return self.message(value, SCHEMA[kind], place)
        fits = {"text": str, "bool": bool, "struct": Mapping}[kind]
        if not isinstance(value, fits):
            raise _NotTheSchema(place)
        return _of_struct(value) if kind == "struct" else value


def _of_struct(value: Any) -> Any:
    """Give a value as a Struct keeps it: every number a double, written without a fraction where it has none."""
    if isinstance(value, Mapping):
        return {name: _of_struct(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_of_struct(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        found = float(value)
    except OverflowError:
        raise OutOfDomain("a number past the largest double") from None
    return int(found) if found.is_integer() else found


def _cleaned(value: Any, *, falsy: bool) -> Any:
    """Drop empty texts, lists and maps throughout, and with `falsy` every false and zero too; None for nothing left."""
    if isinstance(value, Mapping):
        pairs = ((name, _cleaned(member, falsy=falsy)) for name, member in value.items())
        return {name: member for name, member in pairs if member is not None} or None
    if isinstance(value, list):
        return [item for item in (_cleaned(item, falsy=falsy) for item in value) if item is not None] or None
    if value == "" or value is None or (falsy and not value):
        return None
    return value


# Members of 0.3 at the top of a card, and the defaults that its SDK leaves out.
_OLD_MEMBERS = frozenset(
    """
    additionalInterfaces capabilities defaultInputModes defaultOutputModes description documentationUrl iconUrl name
    preferredTransport protocolVersion provider security securitySchemes skills supportsAuthenticatedExtendedCard url
    version
    """.split()
)
_OLD_DEFAULTS = {"preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}


def _read_by_sdk(card: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    if isinstance(card.get("supportedInterfaces", card.get("supported_interfaces")), list):
        reading = _Reading()
        value = reading.message(card, SCHEMA["AgentCard"], "")
        return _cleaned(value, falsy=False) or {}, tuple(reading.unsigned)
    kept = {name: member for name, member in card.items() if name in _OLD_MEMBERS and _OLD_DEFAULTS.get(name) != member}
    schemes = kept.get("securitySchemes")
    if isinstance(schemes, Mapping):
        kept["securitySchemes"] = {name: _untyped(scheme) for name, scheme in schemes.items()}
    strange = [pointer_step(name)[:_LONGEST_POINTER] for name in card if name not in _OLD_MEMBERS]
    return _cleaned(kept, falsy=True) or {}, tuple(strange[:_MOST_UNSIGNED])


def _untyped(scheme: Any) -> Any:
    """Leave out the type of a scheme, which each of the SDK's classes has as its default."""
    return {key: item for key, item in scheme.items() if key != "type"} if isinstance(scheme, Mapping) else scheme


def _sdk_form(card: Mapping[str, Any]) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    value, unsigned = _read_by_sdk(card)
    yield jcs(value), unsigned


def _python_form(card: Mapping[str, Any]) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    value, unsigned = _read_by_sdk(card)
    yield _python_json(value), unsigned


_Form = Callable[[Mapping[str, Any]], Iterator[tuple[bytes, tuple[str, ...]]]]
_FORMS: tuple[tuple[Profile, _Form], ...] = (
    (Profile.SPEC, _spec_forms),
    (Profile.RAW, _raw_form),
    (Profile.SDK, _sdk_form),
    (Profile.ESCAPED, _python_form),
)
