"""Signatures of agent cards: what verifies, what does not, and what nobody can tell."""

import json
from typing import Any

import pytest
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import AgentCard
from a2a.utils.signing import create_agent_card_signer
from google.api import field_behavior_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import assume, given
from hypothesis import strategies as st
from jwt.api_jwk import PyJWK

from index.card_payloads import SCHEMA, Payloads, Profile
from index.records import Severity
from index.signatures import (
    LONGEST_PROTECTED,
    Claim,
    Selected,
    Verdict,
    is_ijson,
    read_claims,
    read_signed,
    select_key,
    signature_problems,
    verdict_json,
    verify,
)
from index.signing_keys import MOST_KEYS, KeySet, described, is_key_set, read_keys
from index.strict_json import parse
from index.verdicts import MOST_SIGNATURES, SignatureOutcome, best_json, shown_json
from tests.fakes.signing import (
    Card,
    encoded,
    key_set,
    private_key,
    public_key,
    python_bytes,
    raw_bytes,
    signature,
    signed,
)

VALID, INVALID, MALFORMED = SignatureOutcome.VALID, SignatureOutcome.INVALID, SignatureOutcome.MALFORMED
UNAVAILABLE, UNSUPPORTED = SignatureOutcome.KEY_UNAVAILABLE, SignatureOutcome.UNSUPPORTED_ALG

CARD: Card = {
    "name": "Trips",
    "description": "Plans trips",
    "version": "1.0.0",
    "supportedInterfaces": [
        {"url": "https://acme.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    ],
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "route", "name": "Route", "description": "Finds a route", "tags": ["travel"]}],
}
# Everything that the rules treat differently: empty REQUIRED members, defaults, flags with and without presence.
SPARSE: Card = {
    **CARD,
    "description": "",
    "skills": [],
    "iconUrl": "",
    "securitySchemes": {},
    "capabilities": {
        "streaming": False,
        "extensions": [{"uri": "https://x.example/e", "required": False, "params": {"depth": 0, "empty": {}}}],
    },
    "supportedInterfaces": [{**CARD["supportedInterfaces"][0], "tenant": ""}],
}
OLD_CARD: Card = {
    "name": "Trips",
    "description": "Plans trips",
    "url": "https://acme.example/rpc",
    "version": "1.0.0",
    "protocolVersion": "0.3.0",
    "preferredTransport": "JSONRPC",
    "capabilities": {"streaming": True, "pushNotifications": False},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    "skills": [{"id": "route", "name": "Route", "description": "Finds a route", "tags": ["travel"]}],
}
KEYS = key_set(public_key(private_key()))


def verdicts(card: Any, keys: Any = KEYS) -> tuple[Verdict, ...]:
    """Verify a card as it would be served."""
    found = read_signed(card if isinstance(card, str | bytes) else json.dumps(card))
    assert found is not None
    held = read_keys(keys)
    return verify(found, lambda claim: select_key(claim.kid, held, "test"))


def verdict(card: Any, keys: Any = KEYS) -> Verdict:
    (found,) = verdicts(card, keys)
    return found


def outcome(card: Any, keys: Any = KEYS) -> tuple[str, str]:
    found = verdict(card, keys)
    return found.outcome, found.reason


# --- algorithms and keys ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alg", ["ES256", "ES384", "EdDSA", "RS256", "PS256"])
def test_each_allowed_algorithm_verifies_and_fails_on_another_key(alg: str) -> None:
    card = signed(CARD, alg=alg)
    assert outcome(card, key_set(public_key(private_key(alg)))) == (VALID, "")
    assert outcome(card, key_set(public_key(private_key(alg, 2)))) == (INVALID, "no_form_matches")


def test_a_changed_card_is_invalid_and_the_message_accuses_nobody() -> None:
    card = {**signed(CARD), "name": "Traps"}
    assert outcome(card) == (INVALID, "no_form_matches")
    (problem,) = signature_problems(verdicts(card))
    assert (problem.code, problem.severity, problem.pointer) == (
        "signature.invalid",
        Severity.WARNING,
        "/signatures/0",
    )
    assert "tamper" not in problem.message


def header(**members: Any) -> dict[str, str]:
    """A signature whose header is written as it is given."""
    return {"protected": encoded(json.dumps(members).encode()), "signature": signature(CARD)["signature"]}


GOOD = signature(CARD)
STATED = {
    "none": (header(alg="none", kid="key-1"), UNSUPPORTED, "alg"),
    "an HMAC": (header(alg="HS256", kid="key-1"), UNSUPPORTED, "alg"),
    "the default of the Python signer": (header(alg="HS256", kid=None), UNSUPPORTED, "alg"),
    "another curve": (header(alg="ES512", kid="key-1"), UNSUPPORTED, "alg"),
    "an algorithm in other letters": (header(alg="es256", kid="key-1"), UNSUPPORTED, "alg"),
    "no algorithm": (header(kid="key-1"), MALFORMED, "no_alg"),
    "an algorithm that is no text": (header(alg=["ES256"], kid="key-1"), MALFORMED, "no_alg"),
    "no key id": (signature(CARD, kid=None), MALFORMED, "no_kid"),
    "a critical extension": (signature(CARD, crit=["exp"], exp=1), MALFORMED, "crit"),
    "a payload that is not encoded": (signature(CARD, b64=False), MALFORMED, "crit"),
    "an unknown key": (signature(CARD, kid="key-2"), UNAVAILABLE, "no_such_key"),
    "a header that is no JSON": ({**GOOD, "protected": encoded(b"{")}, MALFORMED, "protected"),
    "a header that is no object": ({**GOOD, "protected": encoded(b"[]")}, MALFORMED, "protected"),
    "a header with a member twice": (
        {**GOOD, "protected": encoded(b'{"alg":"ES256","alg":"none","kid":"key-1"}')},
        MALFORMED,
        "protected",
    ),
    "a padded header": ({**GOOD, "protected": GOOD["protected"] + "="}, MALFORMED, "protected"),
    "a header as an object": ({**GOOD, "protected": {"alg": "ES256"}}, MALFORMED, "protected"),
    "a huge header": ({**GOOD, "protected": "e" * (LONGEST_PROTECTED + 1)}, MALFORMED, "protected"),
    "a deep header": ({**GOOD, "protected": encoded(b"[" * 50 + b"]" * 50)}, MALFORMED, "protected"),
    "no value": ({"protected": GOOD["protected"]}, MALFORMED, "signature"),
    "a value that is not base64url": ({**GOOD, "signature": "+/"}, MALFORMED, "signature"),
    "a value of one letter": ({**GOOD, "signature": "A"}, MALFORMED, "signature"),
    "a short value": ({**GOOD, "signature": GOOD["signature"][:-8]}, INVALID, "no_form_matches"),
    "no object": ("eyJ", MALFORMED, "not_an_object"),
    "an unprotected header, which counts for nothing": ({**GOOD, "header": {"kid": "x", "alg": "none"}}, VALID, ""),
    "another header beside it": ({**header(alg="ES256"), "header": {"kid": "key-1"}}, MALFORMED, "no_kid"),
}


@pytest.mark.parametrize("case", STATED)
def test_what_a_signature_states_decides_before_any_key_is_tried(case: str) -> None:
    stated, expected, reason = STATED[case]
    assert outcome({**CARD, "signatures": [stated]}) == (expected, reason)


def test_a_key_inside_the_header_proves_nothing() -> None:
    stranger = private_key("ES256", 3)
    card = signed(CARD, stranger, kid="stranger", jwk=public_key(stranger), x5u="https://evil.example/cert")
    assert outcome(card) == (UNAVAILABLE, "no_such_key")
    assert outcome(signed(CARD, stranger, jwk=public_key(stranger))) == (INVALID, "no_form_matches")


def test_an_algorithm_that_the_key_is_not_made_for_is_no_way_in() -> None:
    """The public key of one algorithm must not serve as the secret, or the key, of another."""
    rsa = public_key(private_key("RS256"))
    assert outcome(signed(CARD), key_set(rsa)) == (INVALID, "key_does_not_fit")
    assert outcome(signed(CARD, alg="ES384"), KEYS) == (INVALID, "key_does_not_fit")
    assert outcome(signed(CARD, alg="RS256"), key_set({**rsa, "alg": "PS256"})) == (INVALID, "key_does_not_fit")


OWN = public_key(private_key())
RSA = public_key(private_key("RS256"))
HELD = {
    "the one key": ([OWN], VALID, ""),
    "a key for encryption": ([{**OWN, "use": "enc"}], INVALID, "key_does_not_fit"),
    "a key that may not verify": ([{**OWN, "key_ops": ["sign"]}], INVALID, "key_does_not_fit"),
    "a key that says what it is for": ([{**OWN, "use": "sig", "key_ops": ["verify"], "alg": "ES256"}], VALID, ""),
    "the same key twice": ([OWN, {**OWN, "use": "sig"}], VALID, ""),
    "two keys of one name": ([OWN, public_key(private_key("ES256", 5))], UNAVAILABLE, "ambiguous_kid"),
    "two keys of one name and two kinds": ([OWN, RSA], UNAVAILABLE, "ambiguous_kid"),
    "no key": ([], UNAVAILABLE, "no_such_key"),
    "a private key that was published": (
        [{**OWN, "d": private_key().as_dict(private=True)["d"]}],
        UNAVAILABLE,
        "unusable_key",
    ),
    "a secret": ([{"kty": "oct", "k": "c2VjcmV0", "kid": "key-1"}], UNAVAILABLE, "no_such_key"),
    "a point that is not on the curve": ([{**OWN, "x": OWN["y"], "y": OWN["x"]}], UNAVAILABLE, "unusable_key"),
    "a coordinate that is too long": ([{**OWN, "x": "A" * 4000}], UNAVAILABLE, "no_such_key"),
    "a curve of another kind": ([{**OWN, "crv": "secp256k1"}], UNAVAILABLE, "unusable_key"),
    "a small RSA key": ([{**RSA, "n": RSA["n"][:100]}], UNAVAILABLE, "unusable_key"),
    "a huge RSA key": ([{**RSA, "n": "v" * 5000}], UNAVAILABLE, "no_such_key"),
    "a huge exponent": ([{**RSA, "e": "v" * 300}], UNAVAILABLE, "no_such_key"),
    "a key that is no object": (["key-1"], UNAVAILABLE, "no_such_key"),
    "a key past the bound": ([{**RSA, "kid": f"{n}"} for n in range(MOST_KEYS)] + [OWN], UNAVAILABLE, "no_such_key"),
}


@pytest.mark.parametrize("case", HELD)
def test_the_key_id_must_choose_exactly_one_usable_key(case: str) -> None:
    keys, expected, reason = HELD[case]
    assert outcome(signed(CARD), key_set(*keys)) == (expected, reason)


def test_a_key_set_that_cannot_be_had_makes_nothing_invalid() -> None:
    found = read_claims({**CARD, "signatures": [GOOD]})
    assert found is not None
    (one,) = verify(found, lambda claim: Selected(fault="no_key_set"))
    assert (one.outcome, one.reason) == (UNAVAILABLE, "no_key_set")
    (problem,) = signature_problems([one])
    assert (problem.code, problem.severity) == ("signature.key_unavailable", Severity.INFO)


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        (KEYS, []),
        (OWN, []),  # one key by itself
        ({"keys": {}}, ["keys.not_a_key_set"]),
        ([], ["keys.not_a_key_set"]),
        ({"keys": [{**OWN, "d": "x"}]}, ["keys.private"]),
        (
            {"keys": [{"kty": "oct", "kid": "a", "k": "x"}, {"kty": "EC", "kid": "b"}]},
            ["keys.private", "keys.unusable"],
        ),
        ({"keys": [OWN] * (MOST_KEYS + 1)}, ["keys.too_many"]),
    ],
)
def test_what_is_wrong_with_a_key_set_is_said(value: Any, codes: list[str]) -> None:
    assert [problem.code for problem in read_keys(value).problems] == codes


def test_keys_are_described_without_their_order_and_without_what_is_not_theirs() -> None:
    first, second = {**OWN, "kid": "a", "x5c": ["cert"]}, {**RSA, "kid": "b"}
    assert described(read_keys(key_set(first, second))) == described(read_keys(key_set(second, first)))
    assert [row["kid"] for row in described(read_keys(key_set(second, first)))] == ["a", "b"]
    assert set(described(read_keys(key_set(first)))[0]) == {"kid", "kty", "crv", "thumbprint"}
    assert described(read_keys(key_set(first)))[0]["thumbprint"] == private_key().thumbprint()
    assert is_key_set(KEYS)
    assert not is_key_set(CARD)


# --- what is signed ---------------------------------------------------------------------------------------------------


def spec_bytes(card: Card) -> bytes:
    """SPARSE as the specification's rule writes it, by hand."""
    kept = {
        **card,
        "capabilities": {**card["capabilities"], "extensions": [dict(card["capabilities"]["extensions"][0])]},
    }
    for name in ("securitySchemes", "signatures"):
        kept.pop(name, None)
    del kept["capabilities"]["extensions"][0]["required"]
    kept["supportedInterfaces"] = [{k: v for k, v in kept["supportedInterfaces"][0].items() if k != "tenant"}]
    return raw_bytes(kept)


def test_the_rule_of_the_specification_comes_first() -> None:
    assert verdict(signed(SPARSE, write=spec_bytes)).profile is Profile.SPEC
    assert verdict(signed(CARD)).profile is Profile.SPEC  # where all rules agree
    assert signature_problems(verdicts(signed(SPARSE, write=spec_bytes))) == []


def test_a_card_signed_as_it_stands_is_valid_with_a_note() -> None:
    card = signed(SPARSE)
    found = verdict(card)
    assert (found.outcome, found.profile, found.unsigned_members) == (VALID, Profile.RAW, ())
    assert [(p.code, p.severity) for p in signature_problems([found])] == [("signature.profile", Severity.INFO)]


def test_only_the_signatures_at_the_top_are_left_out() -> None:
    params = {"signatures": [{"protected": "x"}]}
    inner = {**CARD, "capabilities": {"extensions": [{"uri": "https://x.example/e", "params": params}]}}
    card = signed(inner)
    assert outcome(card) == (VALID, "")
    card["capabilities"] = {"extensions": [{"uri": "https://x.example/e", "params": {}}]}
    assert outcome(card) == (INVALID, "no_form_matches")


def by_sdk(card: Card, alg: str = "ES256") -> AgentCard:
    """Sign with the signer of the real SDK."""
    key = PyJWK({**private_key(alg).as_dict(private=True), "alg": alg})
    sign = create_agent_card_signer(key, {"kid": "key-1", "alg": alg, "jku": None, "typ": "JOSE"})
    return sign(ParseDict(card, AgentCard()))


FOREIGN = {**CARD, "name": "Reisen für Übermütige 🧭", "description": "Zeile\u2028zwei \u20ac \ufb33", "version": "1"}


@pytest.mark.parametrize("alg", ["ES256", "ES384", "EdDSA", "RS256", "PS256"])
def test_a_card_that_the_real_sdk_signed_is_valid(alg: str) -> None:
    card = MessageToDict(by_sdk(CARD, alg))
    assert outcome(card, key_set(public_key(private_key(alg)))) == (VALID, "")


def test_a_sparse_card_of_the_real_sdk_follows_its_own_rule() -> None:
    """It drops empty members that the specification keeps; what it serves lacks them as well, but not in `params`."""
    served = MessageToDict(by_sdk(SPARSE))
    found = verdict(served)
    assert (found.outcome, found.profile) == (VALID, Profile.SDK)
    assert found.unsigned_members == ()


def test_a_card_beyond_ascii_of_the_real_sdk_is_valid() -> None:
    served = json.dumps(MessageToDict(by_sdk(FOREIGN)), ensure_ascii=False)
    assert outcome(served) == (VALID, "")
    assert outcome(served.replace("Zeile", "Seite")) == (INVALID, "no_form_matches")


HYBRID: Card = {
    **CARD,
    "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}},
    "securityRequirements": [{"schemes": {"key": {"list": []}}}],
    "supportedInterfaces": [
        *CARD["supportedInterfaces"],
        {"url": "https://acme.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
    ],
}


def test_a_hybrid_of_the_real_sdk_is_valid_and_what_is_not_covered_is_named() -> None:
    served = agent_card_to_dict(by_sdk(HYBRID))
    assert served["url"] == "https://acme.example/rpc"
    found = verdict(served)
    assert (found.outcome, found.profile) == (VALID, Profile.SDK)
    assert {"/url", "/protocolVersion", "/preferredTransport", "/securitySchemes/key/type"} <= set(
        found.unsigned_members
    )
    codes = [problem.code for problem in signature_problems([found])]
    assert codes == ["signature.profile", "signature.unsigned_members"]
    # What is not covered may say anything, which is why it is named.
    assert verdict({**served, "url": "https://evil.example/rpc"}).outcome is VALID
    assert verdict({**served, "name": "Traps"}).outcome is INVALID


def python_sdk_bytes(card: Card) -> bytes:
    """Write as the SDK did before it wrote canonically: the same members, Python's own JSON."""
    return python_bytes({name: member for name, member in card.items() if name != "signatures"})


def test_the_bytes_of_older_python_signers_are_known() -> None:
    card = signed(FOREIGN, write=python_sdk_bytes)
    assert verdict(card).profile is Profile.ESCAPED
    assert verdict({**card, "extra": 1}).unsigned_members == ("/extra",)


# Recorded from the SDK for 0.3 (version 0.3.22), which drops false flags, its defaults and the types of schemes.
OLD_SDK_BYTES = (
    b'{"capabilities":{"streaming":true},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],'
    b'"description":"Plans trips","name":"Trips","securitySchemes":{"key":{"in":"header","name":"X-Key"}},'
    b'"skills":[{"description":"Finds a route","id":"route","name":"Route","tags":["travel"]}],'
    b'"url":"https://acme.example/rpc","version":"1.0.0"}'
)


def test_a_card_of_0_3_is_valid_as_its_sdk_signed_it() -> None:
    card = signed(OLD_CARD, write=lambda _: OLD_SDK_BYTES)
    found = verdict(card)
    assert (found.outcome, found.profile, found.unsigned_members) == (VALID, Profile.SDK, ())
    assert verdict({**card, "url": "https://evil.example/rpc"}).outcome is INVALID


def test_the_schema_is_that_of_the_real_sdk() -> None:
    seen = {}

    def describe(message: Any) -> None:
        if message.name in seen or message.full_name.startswith("google."):
            return
        members = seen[message.name] = {}
        for field in message.fields:
            kind, many = "text", "list" if field.is_repeated else ""
            inner = field.message_type
            if inner is not None and inner.GetOptions().map_entry:
                many, inner = "map", inner.fields_by_name["value"].message_type
            if inner is not None:
                kind = "struct" if inner.name == "Struct" else inner.name
                describe(inner)
            elif field.cpp_type == field.CPPTYPE_BOOL:
                kind = "bool"
            required = field_behavior_pb2.REQUIRED in field.GetOptions().Extensions[field_behavior_pb2.field_behavior]
            optional = field.has_presence and field.message_type is None
            members[field.json_name] = (kind, many, "!" if required else "?" if optional else "")

    describe(AgentCard.DESCRIPTOR)
    del seen["AgentCard"]["signatures"], seen["AgentCardSignature"]
    ours = {
        name: {key: (known.kind, known.many, known.presence) for key, known in fields.items()}
        for name, fields in SCHEMA.items()
    }
    assert ours == seen


# --- text and numbers -------------------------------------------------------------------------------------------------


def test_the_card_is_read_from_its_text_and_not_from_what_a_parser_made_of_it() -> None:
    """A number means its double, whatever its spelling; one that no double can be is out of the domain."""
    params = {"limit": 1, "zero": 0, "big": 1e21, "most": 2**53 - 1}
    inner = {**CARD, "capabilities": {"extensions": [{"uri": "https://x.example/e", "params": params}]}}
    text = json.dumps(signed(inner))
    spelled = text.replace('"limit": 1,', '"limit": 1.0,').replace('"zero": 0', '"zero": -0')
    assert spelled != text
    assert outcome(spelled) == (VALID, "")
    assert outcome(text.replace(str(2**53 - 1), str(2**53))) == (INVALID, "number_out_of_domain")


def test_a_number_out_of_the_domain_where_no_signature_reaches_does_no_harm() -> None:
    served = {**MessageToDict(by_sdk(CARD)), "build": 2**64}
    found = verdict(served)
    assert (found.outcome, found.profile, found.unsigned_members) == (VALID, Profile.SDK, ("/build",))


def test_names_are_sorted_by_utf_16() -> None:
    """By code points the two would stand the other way round."""
    card = {**CARD, "\U0001f600": 1, "\ufb33": 2}
    (form,) = [item for item in Payloads(card) if item.profile is Profile.SPEC]
    assert form.body.decode().index("\U0001f600") < form.body.decode().index("\ufb33")
    assert outcome(signed(card)) == (VALID, "")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(signed(CARD)).replace('"name"', '"name": "Traps", "name"', 1),
        json.dumps(signed(CARD)).replace('"Trips"', '"\\ud800"'),
        json.dumps(signed(CARD)).replace('"Trips"', "1e999"),
    ],
    ids=["a member twice", "half of a surrogate pair", "an endless number"],
)
def test_a_text_without_one_meaning_has_no_valid_signature(text: str) -> None:
    assert outcome(text) == (MALFORMED, "not_exact")


def test_a_card_without_signatures_is_unsigned() -> None:
    for card in (CARD, {**CARD, "signatures": []}, {**CARD, "signatures": None}, []):
        assert read_signed(json.dumps(card)) is None
    assert best_json([]) == {"outcome": "unsigned"}
    assert best_json(None) is shown_json(None) is None
    assert outcome({**CARD, "signatures": {"protected": "x"}}) == (MALFORMED, "not_a_list")


def test_an_inline_card_is_found_in_its_entry() -> None:
    entry = json.dumps({"identifier": "urn:air:acme.example:agents:trips", "data": signed(CARD)})
    found = read_signed(entry, member=("data", "inline"))
    assert found is not None
    assert verify(found, lambda claim: select_key(claim.kid, read_keys(KEYS)))[0].outcome is VALID


# --- several signatures, and what is kept -----------------------------------------------------------------------------


def test_each_signature_has_its_own_outcome_and_the_card_that_of_the_best() -> None:
    other = signature(CARD, private_key("ES256", 9))
    found = verdicts({**CARD, "signatures": [header(alg="none"), other, signature(CARD)]})
    assert [item.outcome for item in found] == [UNSUPPORTED, INVALID, VALID]
    kept = [verdict_json(item) for item in found]
    assert best_json(kept) == {"outcome": "valid", "profile": "spec", "kid": "key-1"}
    assert best_json(kept[:2]) == {"outcome": "invalid", "kid": "key-1"}
    assert best_json(kept[:1]) == {"outcome": "unsupported_alg"}
    assert shown_json([{**kept[1], "known": "valid"}]) == kept[1:2]


def test_only_so_many_signatures_are_looked_at() -> None:
    found = read_claims({**CARD, "signatures": [GOOD] * 1000})
    assert found is not None
    assert (len(found.claims), found.omitted) == (MOST_SIGNATURES, 1000 - MOST_SIGNATURES)


def test_no_key_is_loaded_and_no_form_written_more_often_than_needed() -> None:
    """Nothing is verified of what cannot be valid, and no key is asked for."""
    asked: list[Claim] = []

    def select(claim: Claim) -> Selected:
        asked.append(claim)
        return Selected(fault="no_such_key")

    found = read_claims({**CARD, "signatures": [header(alg="none"), "x", GOOD]})
    assert found is not None
    verify(found, select)
    assert [claim.position for claim in asked] == [2]


def test_what_is_kept_of_a_verdict() -> None:
    card = signed(SPARSE, jku="https://Keys.acme.example:8443/jwks.json?x=1")
    assert verdict_json(verdict(card)) == {
        "pointer": "/signatures/0",
        "outcome": "valid",
        "alg": "ES256",
        "kid": "key-1",
        "jkuHost": "keys.acme.example",
        "keySource": "test",
        "key": private_key().thumbprint(),
        "profile": "raw",
    }
    assert verdict_json(verdict({**CARD, "signatures": ["x"]})) == {
        "pointer": "/signatures/0",
        "outcome": "malformed",
        "reason": "not_an_object",
    }


# --- hostile input ----------------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=8) | st.sampled_from(["\ud800", "key-1", "ES256", "none", "AA", "eyJ", "", "\x00"])
NUMBERS = st.integers() | st.floats() | st.sampled_from([2**53, -(2**70), 1e300, -0.0])
NAMES = st.sampled_from([*SCHEMA["AgentCard"], "signatures", "supported_interfaces", "x", "list", "schemes", "params"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | TEXTS, inner, max_size=5),
    max_leaves=20,
)
HEADERS = st.dictionaries(st.sampled_from(["alg", "kid", "jku", "crit", "b64", "x"]), TEXTS | JSON, max_size=5)
SIGNATURES = st.fixed_dictionaries(
    {},
    optional={
        "protected": HEADERS.map(lambda value: encoded(json.dumps(value).encode())) | JSON | st.just(GOOD["protected"]),
        "signature": JSON | st.just(GOOD["signature"]) | st.binary(max_size=80).map(encoded),
        "header": JSON,
    },
)
HOSTILE_KEYS = st.lists(
    st.fixed_dictionaries(
        {"kid": st.sampled_from(["key-1", "", "\ud800"]) | JSON, "kty": st.sampled_from(["EC", "RSA", "OKP", "oct"])},
        optional={
            "crv": st.sampled_from(["P-256", "P-384", "Ed25519", "Ed448", "X25519", "P-521"]) | JSON,
            **{name: st.binary(max_size=400).map(encoded) | JSON for name in ("x", "y", "n", "e", "d")},
        },
    )
    | JSON,
    max_size=4,
)


@given(
    st.dictionaries(NAMES, JSON, max_size=6),
    st.lists(SIGNATURES | JSON, max_size=4) | JSON,
    HOSTILE_KEYS,
)
def test_verification_never_raises(card: dict[str, Any], signatures: Any, keys: list[Any]) -> None:
    text = json.dumps({**card, "signatures": signatures})
    held = read_keys({"keys": [*keys, OWN]})
    for found in (read_signed(text), read_signed(text, max_depth=4), read_signed(text, member=("data",))):
        if found is not None:
            results = verify(found, lambda claim: select_key(claim.kid, held))
            assert len(results) == len(found.claims) <= MOST_SIGNATURES
            json.dumps([verdict_json(item) for item in results])
            assert all(problem.code.startswith("signature.") for problem in signature_problems(results))


@given(JSON)
def test_reading_keys_never_raises(value: Any) -> None:
    for keys in (value, {"keys": value}, {"keys": [value]}):
        assert isinstance(read_keys(keys), KeySet)
        json.dumps(described(read_keys(keys)))


@given(st.dictionaries(NAMES, JSON, max_size=6))
def test_whatever_was_signed_as_it_stands_is_valid_unless_it_has_no_canonical_form(card: dict[str, Any]) -> None:
    card.pop("signatures", None)
    try:
        written = signed(card)
        text = json.dumps(written, allow_nan=False).encode()
    except ValueError:
        return
    assume(is_ijson(parse(text)))
    assert outcome(text)[0] is VALID
