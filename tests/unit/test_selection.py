"""A visit to chosen documents leaves the schedule of the others as it was."""

from datetime import UTC, datetime, timedelta

from crawler.selection import select_documents
from index.documents import DocumentKind, DocumentState
from index.records import Mechanism

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
ORIGIN = "https://acme.example"


def state(path: str, kind: DocumentKind, due: datetime | None) -> DocumentState:
    return DocumentState(ORIGIN + path, ORIGIN, kind, first_seen_at=NOW, next_fetch_at=due)


def states(*found: DocumentState) -> dict[str, DocumentState]:
    return {item.url: item for item in found}


def test_the_chosen_document_is_due_and_no_other() -> None:
    known = states(
        state("/ard.json", DocumentKind.MANIFEST, NOW + timedelta(hours=1)),
        state("/card.json", DocumentKind.ARTIFACT, NOW - timedelta(hours=1)),
        state("/robots.txt", DocumentKind.ROBOTS, None),
    )
    selection = select_documents(known, [ORIGIN + "/ard.json"], NOW)
    assert selection.states[ORIGIN + "/ard.json"].next_fetch_at is None
    left_alone = selection.states[ORIGIN + "/card.json"].next_fetch_at
    assert left_alone is not None
    assert left_alone > NOW
    assert selection.states[ORIGIN + "/robots.txt"].next_fetch_at is None
    assert [(target.kind, target.lead.url) for target in selection.targets] == [
        (DocumentKind.MANIFEST, ORIGIN + "/ard.json")
    ]


def test_the_origin_is_due_when_the_first_of_all_its_documents_is() -> None:
    overdue, later = NOW - timedelta(hours=1), NOW + timedelta(hours=2)
    known = states(
        state("/ard.json", DocumentKind.MANIFEST, later), state("/card.json", DocumentKind.ARTIFACT, overdue)
    )
    selection = select_documents(known, [ORIGIN + "/ard.json"], NOW)
    assert selection.next_look_at(later) == overdue
    assert select_documents({}, [], NOW).next_look_at(None) is None
    unseen = states(state("/new.json", DocumentKind.ARTIFACT, None))
    assert select_documents(unseen, [], NOW).next_look_at(later) == NOW


def test_a_document_that_is_not_known_yet_is_looked_at_as_an_artifact() -> None:
    (target,) = select_documents({}, [ORIGIN + "/card.json"], NOW).targets
    assert (target.kind, target.lead.mechanism) == (DocumentKind.ARTIFACT, Mechanism.ENTRY)
