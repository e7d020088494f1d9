"""What one answer means: a manifest, a page or a card, judged by its shape and history.

A judge belongs to one visit. It reads, and gives back what has to be recorded; it records nothing itself, but for the
control request that tells a catch-all host.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crawler.clock import Clock
from crawler.discover import RELATIONS, leads_from_page
from crawler.policy.freshness import CacheControl, parse_cache_control
from crawler.policy.watch import (
    Content,
    Step,
    WatchRules,
    after_absence,
    after_content,
    after_failure,
    after_not_modified,
)
from crawler.shelf import Shelf
from crawler.surfaces import ard, artifact
from crawler.surfaces.base import Bounds, Source
from crawler.surfaces.html import Page, read_page
from index.documents import (
    ABSENCES,
    FAILURES,
    VALIDATOR_LIES,
    DocumentKind,
    DocumentState,
    DocumentVisit,
    Observation,
    Outcome,
)
from index.identity import essence, is_json_type
from index.records import (
    Artifact,
    ArtifactDecision,
    ArtifactRef,
    Entry,
    Mechanism,
    Problem,
    Reading,
    Signer,
    Standing,
)
from index.signatures import SignedCard, Verdict
from index.strict_json import canonical, digest

_IN_THREAD_FROM = 65_536
_MOST_SIGNERS = 64


@dataclass(frozen=True, slots=True)
class JudgeRules:
    """The settings that decide what answers mean."""

    bounds: Bounds
    manifest_watch: WatchRules
    page_watch: WatchRules
    page_size: int
    list_private: bool = False
    withdraw_on_robots: bool = True


@dataclass(slots=True)
class Judge:
    """Judges the answers of one visit.

    `fetch` asks for a document again, `is_catch_all` tells whether the host of a URL answers everything, `decide`
    says what is done about the artifact of an entry, and `verify` what becomes of the signatures of a card from a URL.
    """

    rules: JudgeRules
    clock: Clock
    shelf: Shelf
    fetch: Callable[[DocumentState], Awaitable[Observation]]
    is_catch_all: Callable[[str], Awaitable[bool]]
    decide: Callable[[Entry], ArtifactRef]
    verify: Callable[[SignedCard, str], Awaitable[tuple[Sequence[Verdict], tuple[Signer, ...]]]]

    async def judge(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        """Say what an answer brought, by what the document is watched for."""
        if state.kind is DocumentKind.PAGE:
            visit = await self._page(state, observation)
        elif state.kind is DocumentKind.ARTIFACT:
            visit = await self._artifact(state, observation)
        else:
            visit = await self._manifest(state, observation)
        before_at = state.full_at if VALIDATOR_LIES in visit.notes else state.confirmed_at
        return replace(visit, before_at=before_at, presence_changed=_came_or_went(state, visit.state))

    def missed(self, state: DocumentState, observation: Observation, watch: WatchRules | None = None) -> DocumentVisit:
        """Say what an answer without a document means for the copy that is held."""
        watch = watch or self.rules.manifest_watch
        chance = self.clock.chance()
        if observation.outcome in ABSENCES:
            step = after_absence(state, observation, watch, chance)
        else:
            step = after_failure(state, observation, watch, chance)
            step = replace(step, taken_away=self._is_opt_out(state, observation))
        after = step.state
        if step.taken_away:
            after = replace(after, applied_digest=None, entry_count=0, signers=())
        return DocumentVisit(after, observation, taken_away=step.taken_away, notes=step.notes)

    def _is_opt_out(self, state: DocumentState, observation: Observation) -> bool:
        """Tell whether robots.txt forbids what is shown.

        One that cannot be had is no word of the publisher, and one that forbids where a redirect leads says nothing
        about the document.
        """
        forbidden = observation.outcome is Outcome.DISALLOWED and observation.reason == "robots"
        return self.rules.withdraw_on_robots and forbidden and not observation.hops and state.is_shown

    # --- manifests ----------------------------------------------------------------------------------------------------

    async def _manifest(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        if observation.outcome is Outcome.NOT_MODIFIED:
            return await self._manifest_confirmed(state, observation)
        if observation.outcome is Outcome.FETCHED:
            return await self._manifest_fetched(state, observation)
        return self.missed(state, observation, self.rules.manifest_watch)

    async def _manifest_confirmed(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        step = after_not_modified(state, observation, self.rules.manifest_watch, self.clock.chance())
        if self._is_settled(state, step.state.headers):
            return DocumentVisit(step.state, observation, notes=step.notes)
        body = await self.shelf.load_body(state.digest or "")
        if body is None:
            # A copy that cannot be read is none, and a 304 confirms nothing then (RFC 9111 4.3.3).
            lost = replace(state, digest=None)
            return await self._manifest(lost, await self.fetch(lost))
        reading = self._honoured(await self._read(body, step.state, observation), step.state.headers)
        reading = await self._with_artifacts(reading, observation)
        return self._applied(step, observation, reading, None, held=state.held)

    @staticmethod
    def _is_settled(state: DocumentState, headers: Mapping[str, str]) -> bool:
        """Tell whether the listings reflect what is stored, so that a 304 leaves nothing to read."""
        private = _cache_control(state.headers).private == _cache_control(headers).private
        return state.applied_digest == state.digest and not state.held and private

    async def _manifest_fetched(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        name = digest(observation.body)
        if self._is_applied(state, name, observation):
            # The same bytes as those the listings reflect: nothing to read.
            content = Content(name, state.content_digest, len(observation.body), ard.SURFACE_VERSION)
            step = after_content(state, observation, content, self.rules.manifest_watch, self.clock.chance())
            return DocumentVisit(step.state, observation, notes=step.notes)
        reading = await self._read(observation.body, state, observation)
        if reading.fatal:
            return await self._unusable(state, observation, *reading.problems, kind=reading.kind)
        reading = self._honoured(reading, observation.headers)
        content = _content(name, reading, observation)
        step = after_content(state, observation, content, self.rules.manifest_watch, self.clock.chance())
        # What may not be stored is read and forgotten (RFC 9111 5.2.2.5).
        body = None if _cache_control(observation.headers).no_store else observation.body
        reading = await self._with_artifacts(reading, observation)
        return self._applied(step, observation, reading, body, held=state.held)

    def _applied(
        self, step: Step, observation: Observation, reading: Reading, body: bytes | None, *, held: bool
    ) -> DocumentVisit:
        signers = [signer for entry in reading.entries if entry.inline is not None for signer in entry.inline.signers]
        state = replace(
            step.state,
            applied_digest=step.state.digest,
            held=False,
            entry_count=len(reading.entries),
            signers=tuple(dict.fromkeys(signers))[:_MOST_SIGNERS],
        )
        return DocumentVisit(
            state,
            observation,
            reading=reading,
            body=body,
            changed=step.changed,
            confirm_removals=held,
            notes=step.notes,
        )

    def _is_applied(self, state: DocumentState, name: str, observation: Observation) -> bool:
        current = state.digest == name and state.parser_version == ard.SURFACE_VERSION
        return current and self._is_settled(state, observation.headers)

    async def _unusable(
        self, state: DocumentState, observation: Observation, *problems: Problem, kind: str = "malformed"
    ) -> DocumentVisit:
        """Judge a success that is no manifest: damaged, of another kind, or the page that answers everything (H48)."""
        problem = next(iter(problems), None)
        looks_json = observation.body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
        if kind == "malformed" and (looks_json or is_json_type(observation.headers.get("content-type"))):
            outcome = Outcome.MALFORMED
        elif await self.is_catch_all(observation.final_url):
            outcome = Outcome.CATCH_ALL
        else:
            outcome = Outcome.WRONG_KIND if kind == "unknown" else Outcome.ABSENT
        observation = replace(
            observation,
            outcome=outcome,
            reason=problem.code if problem and outcome in (Outcome.MALFORMED, Outcome.WRONG_KIND) else "not_json",
            detail=problem.message if problem else "",
        )
        if kind == "manifest":
            observation = replace(observation, outcome=Outcome.MALFORMED, reason=problem.code if problem else "")
        reading = Reading(kind, problems=problems, complete=False)
        missed = self.missed(state, observation, self.rules.manifest_watch)
        return replace(missed, reading=reading)

    # --- pages --------------------------------------------------------------------------------------------------------

    async def _page(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        watch = self.rules.page_watch
        if observation.outcome is Outcome.NOT_MODIFIED:
            return await self._page_confirmed(state, observation)
        if observation.outcome is not Outcome.FETCHED:
            return self.missed(state, observation, watch)
        page = await self._parse_page(observation)
        offered: list[Any] = [page.base_url, [[link.url, link.relations] for link in page.links], page.scripts]
        # The same of a page that is whole is news: what it lacks has been taken out.
        seen = digest(canonical([*offered, "cut"] if page.is_cut or observation.truncated else offered))
        # What counts of a page is what it offers to discovery; a nonce elsewhere in it is no change.
        is_applied = state.digest is not None and state.applied_digest is not None and not state.held
        unchanged = state.content_digest == seen and is_applied
        name = state.digest if unchanged and state.digest else digest(observation.body)
        content = Content(name, seen, len(observation.body), ard.SURFACE_VERSION)
        step = after_content(state, observation, content, watch, self.clock.chance())
        if unchanged and state.parser_version == ard.SURFACE_VERSION:
            return DocumentVisit(step.state, observation, notes=step.notes)
        reading = await self._with_artifacts(await self._read_page(page, state, observation), observation)
        return self._applied(step, observation, reading, observation.body, held=state.held)

    async def _page_confirmed(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        step = after_not_modified(state, observation, self.rules.page_watch, self.clock.chance())
        body = None if self._is_settled(state, state.headers) else await self.shelf.load_body(state.digest or "")
        if body is None:
            return DocumentVisit(step.state, observation, notes=step.notes)
        truncated = len(body) >= self.rules.page_size
        stored = replace(observation, body=body, headers=step.state.headers, truncated=truncated)
        reading = await self._with_artifacts(
            await self._read_page(await self._parse_page(stored), state, stored), observation
        )
        return self._applied(step, observation, reading, None, held=state.held)

    async def _read_page(self, page: Page, state: DocumentState, observation: Observation) -> Reading:
        arguments = (page.scripts, page.base_url, self._source(state, observation), self.rules.bounds)
        if sum(map(len, page.scripts)) > _IN_THREAD_FROM:
            reading = await asyncio.to_thread(ard.read_in_page, *arguments)
        else:
            reading = ard.read_in_page(*arguments)
        return replace(
            reading,
            leads=tuple(leads_from_page(page, self.rules.bounds.links)),
            complete=reading.complete and not observation.truncated and not page.is_cut,
            all_leads=len(page.links) <= self.rules.bounds.links,
        )

    async def _parse_page(self, observation: Observation) -> Page:
        content_type = observation.headers.get("content-type")
        if essence(content_type) not in ("", "text/html", "application/xhtml+xml"):
            return Page(observation.final_url, (), ())
        arguments = (observation.body, observation.final_url, content_type, RELATIONS)
        if len(observation.body) > _IN_THREAD_FROM:
            return await asyncio.to_thread(read_page, *arguments)
        return read_page(*arguments)

    # --- artifacts ----------------------------------------------------------------------------------------------------

    async def _with_artifacts(self, reading: Reading, observation: Observation) -> Reading:
        """Decide about the artifact of each entry that can be listed, and read those that are inline."""
        url = observation.final_url
        entries = [self._with_artifact(entry, url) for entry in reading.entries]
        for position, signed in artifact.signed_inline(entries).items():
            entry = entries[position]
            verdicts, signers = await self.verify(signed, url)
            if entry.inline is not None:
                entries[position] = replace(entry, inline=artifact.with_signatures(entry.inline, verdicts, signers))
        return replace(reading, entries=tuple(entries))

    def _with_artifact(self, entry: Entry, url: str) -> Entry:
        if entry.standing is not Standing.CANDIDATE:
            return entry
        ref = self.decide(entry)
        if ref.decision != ArtifactDecision.INLINE:
            return replace(entry, artifact=ref)
        return replace(entry, artifact=ref, inline=artifact.read_inline(entry, url))

    async def _artifact(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        if observation.outcome is Outcome.NOT_MODIFIED:
            return await self._artifact_confirmed(state, observation)
        if observation.outcome is Outcome.FETCHED:
            return await self._artifact_fetched(state, observation)
        return self.missed(state, observation)

    async def _artifact_confirmed(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        step = after_not_modified(state, observation, self.rules.manifest_watch, self.clock.chance())
        if self._is_settled(state, step.state.headers):
            return DocumentVisit(step.state, observation, notes=step.notes)
        body = await self.shelf.load_body(state.digest or "")
        if body is None:
            # As for manifests: without the copy a 304 confirms nothing (RFC 9111 4.3.3).
            lost = replace(state, digest=None)
            return await self._artifact(lost, await self.fetch(lost))
        read = self._honoured_card(await self._read_artifact(body, observation, state.mechanism), step.state.headers)
        return self._carded(step, observation, await self._verified(read, body, observation), None)

    async def _artifact_fetched(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        body = observation.body
        name = digest(body)
        watch, chance = self.rules.manifest_watch, self.clock.chance()
        current = name == state.digest and state.parser_version == artifact.VERSION
        if current and self._is_settled(state, observation.headers):
            content = Content(name, state.content_digest, len(body), artifact.VERSION)
            step = after_content(state, observation, content, watch, chance)
            return DocumentVisit(step.state, observation, notes=step.notes)
        read = await self._read_artifact(body, observation, state.mechanism)
        if read.kind not in artifact.READ_KINDS:
            kind = "malformed" if read.kind == "not_a_document" else "unknown"
            visit = await self._unusable(state, observation, *read.problems, kind=kind)
            return replace(visit, artifact=read if visit.observation.outcome is Outcome.WRONG_KIND else None)
        read = await self._verified(self._honoured_card(read, observation.headers), body, observation)
        content = Content(name, read.content_digest, len(body), artifact.VERSION)
        step = after_content(state, observation, content, watch, chance)
        # What may not be stored is read and forgotten (RFC 9111 5.2.2.5).
        return self._carded(step, observation, read, None if _cache_control(observation.headers).no_store else body)

    def _honoured_card(self, read: Artifact, headers: Mapping[str, str]) -> Artifact:
        private = _cache_control(headers).private and not self.rules.list_private
        return artifact.withhold_private(read) if private else artifact.served_as(read, headers.get("content-type"))

    @staticmethod
    def _carded(step: Step, observation: Observation, read: Artifact, body: bytes | None) -> DocumentVisit:
        return DocumentVisit(
            replace(step.state, applied_digest=step.state.digest, signers=read.signers),
            observation,
            body=body,
            changed=step.changed,
            artifact=read,
            notes=step.notes,
        )

    async def _verified(self, read: Artifact, body: bytes, observation: Observation) -> Artifact:
        """Say what became of the signatures of a card."""
        signed = artifact.signed_card(read, body, self.rules.bounds.json_depth)
        if signed is None:
            return artifact.unsigned(read)
        return artifact.with_signatures(read, *await self.verify(signed, observation.final_url))

    async def _read_artifact(self, body: bytes, observation: Observation, mechanism: Mechanism) -> Artifact:
        depth = self.rules.bounds.json_depth
        arguments = (body, observation.final_url, mechanism)
        if len(body) > _IN_THREAD_FROM:
            return await asyncio.to_thread(artifact.read_artifact, *arguments, max_depth=depth)
        return artifact.read_artifact(*arguments, max_depth=depth)

    # --- both ---------------------------------------------------------------------------------------------------------

    async def _read(self, body: bytes, state: DocumentState, observation: Observation) -> Reading:
        """Read a manifest, a large one off the event loop."""
        source = self._source(state, observation)
        if len(body) > _IN_THREAD_FROM:
            return await asyncio.to_thread(ard.read_manifest, body, source, self.rules.bounds)
        return ard.read_manifest(body, source, self.rules.bounds)

    def _honoured(self, reading: Reading, headers: Mapping[str, str]) -> Reading:
        """Keep what is private to us out of what we serve to others, and name a type that hides what was served."""
        reading = ard.served_as(reading, headers.get("content-type"))
        private = _cache_control(headers).private and not self.rules.list_private
        return ard.withhold_private(reading) if private else reading

    @staticmethod
    def _source(state: DocumentState, observation: Observation) -> Source:
        return Source(
            url=observation.final_url or state.url,
            rank=state.rank,
            depth=state.depth,
            ancestors=(*state.ancestors, state.url),
            predecessor=state.mechanism in (Mechanism.PREDECESSOR_PATH, Mechanism.PREDECESSOR_LINK),
        )


def _content(name: str, reading: Reading, observation: Observation) -> Content:
    """Identify a manifest, with the time at which its entries say that they changed last."""
    updated_at = max((entry.updated_at for entry in reading.entries if entry.updated_at is not None), default=None)
    size = len(observation.body)
    return Content(name, reading.content_digest, size, ard.SURFACE_VERSION, len(reading.entries), updated_at)


def _came_or_went(before: DocumentState, after: DocumentState) -> bool:
    """Tell whether a document is there and was not, the other way round, or something else is in its place.

    A failure tells nothing; after one it is open what was there before.
    """
    if after.outcome in FAILURES:
        return False
    if before.attempted_at is None or before.outcome in FAILURES:
        return True
    absences = [state.outcome in ABSENCES for state in (before, after)]
    return any(absences) and (absences != [True, True] or before.reason != after.reason)


def _cache_control(headers: Mapping[str, str]) -> CacheControl:
    return parse_cache_control(headers.get("cache-control"), pragma=headers.get("pragma"))
