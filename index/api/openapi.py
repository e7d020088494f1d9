"""The description of the API, written from the request models and checked against the answers by tests."""

from typing import Any

from config.settings import Settings
from index.api.openapi_observed import annotations, observed_paths, observed_schemas
from index.api.openapi_parts import IDENTIFIER, answers, array, body, closed, parameter, ref, responses
from index.brand_manifest import Reason
from index.endorsement import Verdict
from index.query import (
    DEFAULT_LIST_PAGE,
    LONGEST_FILTER,
    MAX_PAGE_SIZE,
    EndorsementRequest,
    ExploreRequest,
    SearchRequest,
)

_REF = "#/components/schemas/{model}"
_FILTER = (
    "Clauses joined by AND, as in: type = 'application/x', 'application/y' AND updatedAfter > '2026-01-01'. Fields are "
    "displayName (a part of it), type, publisherId with =, and createdAfter, updatedAfter with =, > or >=; commas mean "
    "any of the values. Values with spaces or commas are quoted, single or double; a backslash escapes."
)
_ORDER = (
    "Fields in order, each with an optional ASC or DESC, as in: displayName, updatedAt DESC. Fields are displayName, "
    "createdAt, updatedAt, identifier."
)


def document(settings: Settings) -> dict[str, Any]:
    """Write the OpenAPI document of this registry."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": settings.api.display_name,
            "version": "1",
            "description": "The ARD registry API (Agentic Resource Discovery 0.91), answered from a local index.",
        },
        "servers": [{"url": settings.base_url.rstrip("/")}],
        "paths": {
            "/search": {"post": _search()},
            "/explore": {"post": _explore()},
            "/endorsement": {"post": _endorsement()},
            "/agents": {"get": _list()},
            "/agents/{identifier}": {"get": _retrieve()},
            **observed_paths(),
        },
        "components": {"schemas": {**_models(), **_schemas(), **observed_schemas()}, "responses": responses()},
    }


def _models() -> dict[str, Any]:
    """Take the request schemas from the models that check the requests."""
    schemas: dict[str, Any] = {}
    for model in (SearchRequest, ExploreRequest, EndorsementRequest):
        schema = model.model_json_schema(by_alias=True, ref_template=_REF)
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    return schemas


def _schemas() -> dict[str, Any]:
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    members = {
        "@context": {"oneOf": [{"type": "string"}, {"type": "object"}, {"type": "array"}]},
        "@id": text,
        "identifier": {"type": "string", "pattern": IDENTIFIER},
        "displayName": text,
        "type": text,
        "url": text,
        "description": text,
        "tags": texts,
        "capabilities": texts,
        "version": text,
        "updatedAt": text,
        "metadata": {"type": "object"},
        "trustManifest": {"type": "object"},
    }
    score = {"type": "integer", "minimum": 0, "maximum": 100, "description": "Relevance, and nothing else."}
    return {
        "Entry": {
            "type": "object",
            "description": "A complete entry, as published.",
            "properties": {"identifier": members["identifier"]},
            "required": ["identifier", "displayName", "type"],
        },
        "ListItem": {"type": "object", "properties": members, "required": ["identifier"]},
        "SearchResult": {
            "type": "object",
            "properties": {**members, "score": score, "source": {"type": "string", "format": "uri"}, **annotations()},
            "required": ["identifier", "score", "source", "ardvark:freshness"],
        },
        "SearchResponse": closed(
            {
                "results": array("SearchResult"),
                "referrals": {"type": "array", "items": {"type": "object"}},
                "pageToken": text,
            },
            ["results"],
        ),
        "ExploreResponse": closed(
            {
                "resultType": {"type": "string", "enum": ["facets"]},
                "facets": {"type": "object", "additionalProperties": ref("Facet")},
            },
            ["resultType", "facets"],
        ),
        "Facet": closed({"buckets": array("Bucket"), "otherCount": {"type": "integer"}}, ["buckets"]),
        "Bucket": closed({"value": text, "count": {"type": "integer"}}, ["value", "count"]),
        "ListResponse": {
            "type": "object",
            "properties": {"items": array("ListItem"), "total": {"type": "integer"}, "pageToken": text},
            "required": ["items"],
        },
        "Endorsement": _endorsement_schema(),
        "Error": {
            "type": "object",
            "properties": {"errorCode": text, "message": text},
            "required": ["errorCode", "message"],
        },
    }


def _endorsement_schema() -> dict[str, Any]:
    text, maybe, instant = {"type": "string"}, {"type": ["string", "null"]}, {"type": ["string", "null"]}
    reasons = {"oneOf": [{"type": "null"}, {"type": "string", "enum": list(Reason)}]}
    lag = closed({"atLeastS": {"type": "number"}, "atMostS": {"type": "number"}}, ["atLeastS", "atMostS"])
    diagnostic = {"code": text, "firstSeenAt": instant, "lastSeenAt": instant, "lag": lag}
    evidence = {
        "url": text,
        "finalUrl": maybe,
        "redirects": {"type": "array", "items": text},
        "etag": maybe,
        "digest": maybe,
        "fetchedAt": instant,
        "confirmedAt": instant,
        "freshUntil": instant,
    }
    difference = {"pointer": text, "candidate": maybe, "manifest": maybe}
    members = {
        "verdict": {"type": "string", "enum": list(Verdict)},
        "reason": reasons,
        "detail": text,
        "brandDomain": text,
        "identifier": maybe,
        "manifest": closed(evidence, list(evidence)),
        "entryDigest": maybe,
        "validUntil": instant,
        "diagnostics": {"type": "array", "items": closed(diagnostic, ["code"])},
        "differences": {"type": "array", "items": closed(difference, list(difference))},
        "differencesOmitted": {"type": "boolean"},
    }
    return closed(members, list(members))


def _search() -> dict[str, Any]:
    return {
        "operationId": "searchAgents",
        "summary": "Find entries that fit a need, best first.",
        "requestBody": body("SearchRequest"),
        "responses": answers("SearchResponse", "InvalidArgument", "PayloadTooLarge", "UnsupportedMediaType"),
    }


def _explore() -> dict[str, Any]:
    return {
        "operationId": "exploreRegistry",
        "summary": "Count the values of fields over everything that matches.",
        "requestBody": body("ExploreRequest"),
        "responses": answers("ExploreResponse", "InvalidArgument", "PayloadTooLarge", "UnsupportedMediaType"),
    }


def _endorsement() -> dict[str, Any]:
    return {
        "operationId": "judgeEndorsement",
        "summary": "Compare an entry with what a brand publishes on its own domain.",
        "requestBody": body("EndorsementRequest"),
        "responses": answers("Endorsement", "InvalidArgument", "PayloadTooLarge", "UnsupportedMediaType"),
    }


def _list() -> dict[str, Any]:
    size = {"type": "integer", "minimum": 1, "maximum": 999_999_999, "default": DEFAULT_LIST_PAGE}
    expression = {"type": "string", "maxLength": LONGEST_FILTER}
    return {
        "operationId": "listAgents",
        "summary": "List entries in a fixed order.",
        "parameters": [
            parameter("filter", expression, _FILTER),
            parameter("orderBy", {"type": "string"}, _ORDER),
            parameter("pageSize", size, f"Entries on a page; more than {MAX_PAGE_SIZE} count as {MAX_PAGE_SIZE}."),
            parameter("pageToken", {"type": "string"}, "Continues the page that gave it."),
        ],
        "responses": {**answers("ListResponse", "InvalidArgument"), "304": {"description": "Not modified."}},
    }


def _retrieve() -> dict[str, Any]:
    return {
        "operationId": "getArdEntry",
        "summary": "Get one complete entry by its exact identifier.",
        "parameters": [
            {
                "name": "identifier",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": IDENTIFIER},
                "description": "Percent-encoded as one segment; decoded exactly once.",
                "example": "urn:air:acme.com:agent:assistant",
            }
        ],
        "responses": {
            **answers("Entry", "InvalidArgument", "NotFound"),
            "304": {"description": "Not modified."},
        },
    }
