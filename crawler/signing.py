"""The keys that verify the cards of one visit: those of the operator, then the key sets that signatures point to.

Part of a visit. A key set is a document like any other, asked for by the same rules and kept with its own validators;
its last good copy counts through an outage. A card is verified when it, or a key that it names, has changed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from crawler.agenda import Agenda
from crawler.discover import Target
from crawler.policy.scope import Admitted, Refused, Scope, matches_host, matches_name
from crawler.shelf import Shelf
from index.documents import SUCCESSES, DocumentKind, DocumentState, DocumentVisit
from index.records import RANK_OF_MECHANISM, Lead, Mechanism, Signer
from index.signatures import Claim, Selected, SignedCard, Verdict, select_key, verify
from index.signing_keys import KeySet, joined, read_keys
from index.strict_json import MalformedJson, parse
from index.urls import host_of

MOST_KEY_SETS = 16
_KEY_SETS_KEPT = 64
_MAX_DEPTH = 16
_IN_THREAD_FROM = 8_192
_FEW = 2


@dataclass(frozen=True, slots=True)
class TrustedKeys:
    """Keys that the operator vouches for, and the hosts whose cards they may verify."""

    keys: KeySet
    hosts: tuple[str, ...] = ("*",)


@dataclass(slots=True)
class SignatureVisit:
    """The signature side of one visit.

    `look` asks for a document while the card that names it waits; it may put that off.
    """

    origin: str
    scope: Scope
    shelf: Shelf
    states: dict[str, DocumentState]
    trusted: tuple[TrustedKeys, ...]
    agenda: Agenda
    look: Callable[[Target], Awaitable[None]]
    _asked_for: set[str] = field(default_factory=set)
    _out_of_turn: int = 0
    _named: set[str] = field(default_factory=set)
    _key_sets: dict[str, KeySet] = field(default_factory=dict)
    _trusted: dict[str, KeySet] = field(default_factory=dict)
    # What this visit read may not be committed yet.
    _bodies: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        signers = [(signer, state) for state in self.states.values() for signer in state.signers]
        found = [self.admits(signer.jku, _place(state)) for signer, state in signers if signer.jku]
        self._named = {admitted.url for admitted in found if isinstance(admitted, Admitted)}

    def is_wanted(self, state: DocumentState) -> bool:
        """Tell whether a key set is still named by a card that we know."""
        return state.mechanism is not Mechanism.KEY_SET or state.url in self._named

    def admits(self, jku: str, url: str) -> Admitted | Refused:
        """Admit the address of a key set: https, on the host of the card or on one that is listed for its origin.

        Plain http needs the operator's word for the very origin, or for that of the card.
        """
        admitted = self.scope.admit(jku, source=self.origin)
        if isinstance(admitted, Refused):
            return admitted
        plain = admitted.url.startswith("http:") and not self.origin.startswith("http:")
        if plain and self.scope.rules(admitted.origin) is None:
            return Refused("scheme", "a key set is fetched over plain http from listed origins alone")
        rules = self.scope.rules(self.origin)
        hosts = rules.artifact_hosts if rules is not None else ()
        own = host_of(admitted.url) in (host_of(url), host_of(self.origin))
        if own or any(matches_host(host, admitted.url) for host in hosts):
            return admitted
        return Refused("not_allowlisted", f"{admitted.origin} is not listed for {self.origin}")

    async def plan(self) -> None:
        """Have the key sets looked at that cards name, and cards again whose keys have changed meanwhile."""
        new = 0
        for url in sorted(self._named)[:_KEY_SETS_KEPT]:
            state = await self._known(url)
            new += state is None
            if state is None and new > MOST_KEY_SETS:
                continue
            if state is None or state.mechanism is Mechanism.KEY_SET:
                self.agenda.enqueue(_target(url))
        await self._verify_again()

    async def saw(self, visit: DocumentVisit) -> None:
        """Take note of a look at a key set, and have cards looked at again whose keys it changed."""
        if visit.state.mechanism is not Mechanism.KEY_SET:
            return
        self._asked_for.add(visit.state.url)
        if visit.observation.body and visit.artifact is not None and visit.state.digest is not None:
            self._bodies[visit.state.digest] = visit.observation.body
        if visit.taken_away or visit.artifact is not None:
            await self._verify_again()

    async def _verify_again(self) -> None:
        """Have the documents read again whose cards were verified with other keys than there are now."""
        signed = [state for state in self.states.values() if state.signers]
        found = [state for state in signed if await self._is_outdated(state)]
        for state in found:
            self.states[state.url] = replace(state, applied_digest=None)
        self.agenda.hasten(found)

    async def _is_outdated(self, state: DocumentState) -> bool:
        if state.digest is None or state.applied_digest is None or state.outcome not in SUCCESSES:
            return False  # it is read anew in any case, or cannot be had
        for signer in state.signers:
            selected = await self._select(signer.kid, signer.jku, _place(state), fetch=False)
            if selected is not None and _thumbprint(selected) != signer.key:
                return True
        return False

    # --- verifying ----------------------------------------------------------------------------------------------------

    async def verify(self, signed: SignedCard, url: str) -> tuple[tuple[Verdict, ...], tuple[Signer, ...]]:
        """Verify a card that came from `url`, and name its signers with the keys that were had for them."""
        selected: dict[int, Selected] = {}
        for claim in signed.claims:
            if claim.outcome is None:
                chosen = await self._select(claim.kid, claim.jku, url, fetch=True)
                selected[claim.position] = chosen or Selected(source="jku", fault="key_set_missing")

        def select(claim: Claim) -> Selected:
            return selected[claim.position]

        if len(signed.claims) > _FEW or signed.size > _IN_THREAD_FROM:
            verdicts = await asyncio.to_thread(verify, signed, select)
        else:
            verdicts = verify(signed, select)
        signers = [
            Signer(claim.kid, claim.jku, _thumbprint(selected[claim.position]))
            for claim in signed.claims
            if claim.position in selected
        ]
        return verdicts, tuple(signers)

    async def _select(self, kid: str, jku: str, url: str, *, fetch: bool) -> Selected | None:
        """Choose a key; None where the key set is known and no copy of it may be kept."""
        trusted = self._trusted_for(host_of(url))
        if trusted.named(kid):
            return select_key(kid, trusted, "trusted")
        if not jku:
            return Selected(fault="no_key_set")
        admitted = self.admits(jku, url)
        if isinstance(admitted, Refused):
            return Selected(source="jku", fault="key_set_elsewhere")
        self._named.add(admitted.url)
        state = await self._key_set(admitted.url, fetch=fetch)
        if state is None or state.mechanism is not Mechanism.KEY_SET:
            return Selected(source="jku", fault="key_set_missing")
        if state.outcome in SUCCESSES:
            if isinstance(self.admits(_place(state), url), Refused):
                return Selected(source="jku", fault="key_set_elsewhere")
            if state.digest is None:
                return None
        keys = await self._keys_of(state)
        return Selected(source="jku", fault="key_set_missing") if keys is None else select_key(kid, keys, "jku")

    def _trusted_for(self, host: str) -> KeySet:
        if host not in self._trusted:
            sets = (held.keys for held in self.trusted if any(matches_name(name, host) for name in held.hosts))
            self._trusted[host] = joined(sets)
        return self._trusted[host]

    async def _key_set(self, url: str, *, fetch: bool) -> DocumentState | None:
        state = await self._known(url)
        if not fetch or url in self._asked_for or not self._may_look(url, state):
            return state
        lost = state is None or (state.digest is None and state.outcome in SUCCESSES)
        if state is None or lost or self.agenda.is_due(state):
            self._asked_for.add(url)
            self._out_of_turn += 1
            await self.look(_target(url))
        return self.states.get(url)

    async def _known(self, url: str) -> DocumentState | None:
        """Give a document by its URL, which may be another origin's."""
        state = self.states.get(url)
        if state is None:
            state = await self.shelf.load_document(url)
            if state is not None:
                self.states[url] = state
        return state

    def _may_look(self, url: str, state: DocumentState | None) -> bool:
        """Decline what is a document of another kind, or will be, and more key sets than a publisher needs."""
        if state is not None:
            return state.mechanism is Mechanism.KEY_SET and self._out_of_turn < MOST_KEY_SETS
        known = sum(other.mechanism is Mechanism.KEY_SET for other in self.states.values())
        return not self.agenda.is_planned(url) and self._out_of_turn < MOST_KEY_SETS and known < _KEY_SETS_KEPT

    async def _keys_of(self, state: DocumentState) -> KeySet | None:
        """Give the keys of the last good copy; None when there is none, or the publisher took it away."""
        digest = state.digest
        if digest is None or state.applied_digest is None:
            return None
        if digest not in self._key_sets:
            body = self._bodies.get(digest) or await self.shelf.load_body(digest)
            if body is None:
                return None
            try:
                self._key_sets[digest] = read_keys(parse(body, max_depth=_MAX_DEPTH).value)
            except MalformedJson:
                return None
        return self._key_sets[digest]


def _place(state: DocumentState) -> str:
    return state.final_url or state.url


def _thumbprint(selected: Selected) -> str:
    return selected.key.thumbprint if selected.key is not None else ""


def _target(url: str) -> Target:
    mechanism = Mechanism.KEY_SET
    return Target(DocumentKind.ARTIFACT, Lead(url, mechanism, RANK_OF_MECHANISM[mechanism]))
