"""Keys, and signers of agent cards that write their bytes as signers in the field do."""

import base64
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import rfc8785
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

Card = dict[str, Any]
Writer = Callable[[Card], bytes]


def private_key(alg: str = "ES256", number: int = 0) -> Any:
    """Make a key once; another number is another key."""
    return _made(alg, number)


@lru_cache
def _made(alg: str, number: int) -> Any:
    if alg == "EdDSA":
        return OKPKey.generate_key("Ed25519")
    return RSAKey.generate_key(2048) if alg in ("RS256", "PS256") else ECKey.generate_key(f"P-{alg[2:]}")


def public_key(key: Any, kid: str = "key-1", **more: Any) -> dict[str, Any]:
    """Write the public half as a JWK."""
    return {**key.as_dict(private=False), "kid": kid, **more}


def key_set(*keys: Mapping[str, Any]) -> dict[str, Any]:
    return {"keys": list(keys)}


def raw_bytes(card: Card) -> bytes:
    """Write a card as a simple signer does: all but its signatures, canonically."""
    return rfc8785.dumps({name: member for name, member in card.items() if name != "signatures"})


def python_bytes(card: Card) -> bytes:
    return json.dumps(card, separators=(",", ":"), sort_keys=True).encode()


def encoded(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def signature(
    card: Card,
    key: Any = None,
    *,
    alg: str = "ES256",
    kid: str | None = "key-1",
    jku: str | None = None,
    write: Writer = raw_bytes,
    **header: Any,
) -> dict[str, str]:
    """Sign a card and give the signature; what is None is left out of the header."""
    stated = {"alg": alg, "kid": kid, "jku": jku, "typ": "JOSE", **header}
    protected = encoded(json.dumps({name: value for name, value in stated.items() if value is not None}).encode())
    message = f"{protected}.{encoded(write(card))}".encode()
    made = JWSRegistry.algorithms[alg].sign(message, key or private_key(alg))
    return {"protected": protected, "signature": encoded(made)}


def signed(card: Card, key: Any = None, **how: Any) -> Card:
    """Give a card with one signature over the rest of it."""
    return {**card, "signatures": [signature(card, key, **how)]}
