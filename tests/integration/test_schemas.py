"""Our answers against schemas: those of the protocol where they are at hand, and our own description always."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.conftest import OpenCrawl
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, Site, entry

ROOT = Path(__file__).resolve().parents[2]
ARD = ROOT.parent / "shared" / "data" / "ard"
needs_ard = pytest.mark.skipif(not ARD.is_dir(), reason=f"THE PROTOCOL'S SCHEMAS ARE ABSENT: no folder {ARD}")
ECHO = "urn:air:acme.example:tool:echo"


def _publish(web: FakeWeb) -> Site:
    """Publish entries of every shape that conformant publishers, old ones and careless ones write."""
    acme = web.site("acme")
    acme.manifest(
        entry("echo", tags=["sound"], capabilities=["say"], version="1.0", updatedAt="2026-01-02T03:04:05Z"),
        entry("inline", url=None, data={"name": "Inline", "skills": []}),
        entry("relative", url="cards/relative.json"),
        entry("unnamed", displayName=None),
        {
            **entry("old", type=None),
            "identifier": "urn:ai:acme.example:tool:old",
            "mediaType": "application/mcp-server",
        },
        entry("extended", **{"@context": {"ex": "https://ex.example/#"}, "ex:price": 5, "ex:deep": {"a": [1]}}),
        entry("trusted", trustManifest={"identity": "https://acme.example", "attestations": []}),
        entry("wrong-1", tags="no list", updatedAt="soon", capabilities=[1, "x"], description=7, metadata=[]),
        entry("wrong-2", trustManifest={"trustSchema": {}}, metadata={"a": {"b": 1}, "c": 2}, **{"@id": 7}),
        entry("wrong-3", trustManifest={"identity": "https://acme.example", "attestations": [{}]}, **{"@context": 7}),
        entry("wrong-4", trustManifest={"identity": "https://acme.example", "provenance": {}}, displayName="n" * 5000),
    )
    acme.html(
        "/",
        '<script type="application/ld+json">'
        + json.dumps({"@context": {"in": "https://in.example/#"}, "@graph": [{**entry("page"), "in:page": True}]})
        + "</script>",
    )
    return acme


async def _answers(registry: Registry) -> dict[str, list[Any]]:
    """Ask for one answer of each kind, all pages and modes among them."""
    search = [
        await registry.search("tool acme", pageSize=3),
        await registry.search("tool acme", federation="referrals", pageSize=100),
        await registry.search("xyzzyqwrtp"),
    ]
    page = search[0]
    search.append(await registry.search("tool acme", pageSize=3, pageToken=page["pageToken"]))
    facets = [{"field": name} for name in ("type", "tags", "ex:price", "metadata.none")]
    explore = [
        (await registry.post("/api/v1/explore", {"resultType": {"facets": facets}})).json,
        (await registry.post("/api/v1/explore", {"query": {"text": "tool"}, "resultType": {"facets": facets}})).json,
        (await registry.post("/api/v1/explore", {"resultType": {"facets": []}})).json,
    ]
    listed = [await registry.listing(pageSize="4"), await registry.listing(filter="type = a/b")]
    names = await registry.names()
    assert len(names) == 12, "every entry above is served"
    entries = [(await registry.get(f"/api/v1/agents/urn:air:acme.example:tool:{name}")).json for name in names]
    errors = [
        (await registry.get("/api/v1/agents/x")).json,
        (await registry.get("/api/v1/agents/urn:air:acme.example:tool:none")).json,
        (await registry.post("/api/v1/search", {})).json,
    ]
    assert len(search[1]["results"]) == 12
    return {"search": search, "explore": explore, "list": listed, "entry": entries, "error": errors}


# --- the protocol's own -----------------------------------------------------------------------------------------------


def _protocol_validators() -> dict[str, Any]:
    """Build validators from the protocol's OpenAPI file, its references resolved in the folder and nowhere else."""
    document = yaml.safe_load((ARD / "ard.openapi.yaml").read_text("utf-8"))
    entry_schema = json.loads((ARD / "derived" / "ard-entry.schema.json").read_text("utf-8"))
    registry = jsonschema_rs.Registry(
        [("ard:/openapi.yaml", document), ("ard:/ard-entry.schema.json", entry_schema)],
        draft=jsonschema_rs.Draft202012,
        retriever=_refuse,
    )

    def validator(reference: str) -> Any:
        return jsonschema_rs.Draft202012Validator({"$ref": reference}, registry=registry, validate_formats=True)

    components = "ard:/openapi.yaml#/components/schemas/"
    return {
        "search": validator(components + "SearchResponse"),
        "search request": validator(components + "SearchRequest"),
        "explore": validator(components + "ExploreResponse"),
        "explore request": validator(components + "ExploreRequest"),
        "list": validator(components + "ListResponse"),
        "entry": validator(components + "ArdEntry"),
        "error": validator(components + "Error"),
        "manifest": validator("ard:/ard-entry.schema.json#/$defs/ArdManifest"),
    }


def _refuse(uri: str) -> Any:
    raise LookupError(f"nothing is fetched for a schema: {uri}")


def _complaints(validator: Any, value: Any) -> list[str]:
    return [f"{list(error.instance_path)}: {error.message}" for error in validator.iter_errors(value)]


@needs_ard
async def test_our_answers_satisfy_the_protocols_schemas(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    validators = _protocol_validators()
    async with serving(crawl_sqlite, _publish(web)) as registry:
        answers = await _answers(registry)
    for item in answers["entry"]:
        # Retrieve gives what was published, a publisher's own faults included; results leave them out.
        faulty = ":wrong-" in item["identifier"]
        assert bool(_complaints(validators["entry"], item)) is faulty, item
    for kind in ("search", "list", "explore", "error"):
        for answer in answers[kind]:
            assert _complaints(validators[kind], answer) == []


@needs_ard
async def test_our_manifest_satisfies_the_protocols_schema(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    validators = _protocol_validators()
    acme = web.site("acme")
    acme.manifest(entry("echo"), entry("inline", url=None, data={}))
    async with serving(crawl_sqlite, acme, api={"publish_listings": True}) as registry:
        for path in ("/.well-known/ard.json", "/.well-known/ai-catalog.json"):
            document = (await registry.get(path)).json
            assert len(document["entries"]) == 3
            assert _complaints(validators["manifest"], document) == []
        old = json.loads((ARD / "ai-catalog.v0.9.schema.json").read_text("utf-8"))
        assert _complaints(jsonschema_rs.Draft202012Validator(old, retriever=_refuse), document) == []


@needs_ard
def test_the_protocols_schemas_can_find_fault() -> None:
    """The checks above mean something only if a wrong answer fails them."""
    validators = _protocol_validators()
    result = {"identifier": ECHO, "score": 5, "source": "https://registry.example/"}
    assert _complaints(validators["search"], {"results": [result]}) == []
    for wrong in (
        {"results": [{**result, "score": 5.5}]},
        {"results": [{**result, "score": 101}]},
        {"results": [{**result, "identifier": "echo"}]},
        {"results": [{**result, "source": "not a URL"}]},
        {"results": [{**result, "tags": "x"}]},
        {"results": [{"identifier": ECHO}]},
        {"results": [], "total": 0},
    ):
        assert _complaints(validators["search"], wrong), wrong
    assert _complaints(validators["entry"], {**entry("echo"), "data": {}})
    assert _complaints(validators["manifest"], {"entries": [{}]})


REQUESTS: list[tuple[str, Any]] = [
    ("search", {"query": {"text": "tool"}}),
    ("search", {"query": {"text": "tool", "filter": {"type": "a/b", "tags": ["x", "y"]}}, "federation": "referrals"}),
    ("search", {"query": {"text": "tool", "@context": "https://ex.example/context"}, "pageSize": 3}),
    ("search", {"query": {"text": "tool", "@context": {"ex": "https://ex.example/#"}, "filter": {"ex:a": "b"}}}),
    ("search", {"query": {"text": "tool", "@context": [{"ex": "https://ex.example/#"}]}, "federation": "none"}),
    ("explore", {"resultType": {"facets": [{"field": "type"}]}}),
    ("explore", {"query": {}, "resultType": {"facets": [{"field": "tags", "limit": 5, "minCount": 2}]}}),
    ("explore", {"query": {"filter": {"publisher": "acme.example"}}, "resultType": {"facets": []}}),
]


@needs_ard
async def test_what_the_protocol_allows_to_ask_is_answered(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    validators = _protocol_validators()
    async with serving(crawl_sqlite, _publish(web)) as registry:
        for kind, body in REQUESTS:
            assert _complaints(validators[f"{kind} request"], body) == [], "the sample itself is sound"
            answer = await registry.post(f"/api/v1/{kind}", body)
            assert answer.status == 200, (body, answer.body)
            assert _complaints(validators[kind], answer.json) == []


# --- our own ----------------------------------------------------------------------------------------------------------


async def test_our_description_is_a_valid_openapi_document(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        document = (await registry.get("/openapi.json")).json
    assert document["openapi"].startswith("3.1.")
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


async def test_our_answers_satisfy_our_description(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite, _publish(web)) as registry:
        document = (await registry.get("/openapi.json")).json
        answers = await _answers(registry)
    schemas = jsonschema_rs.Registry(
        [("ardvark:/openapi.json", document)], draft=jsonschema_rs.Draft202012, retriever=_refuse
    )
    for kind, name in (
        ("search", "SearchResponse"),
        ("explore", "ExploreResponse"),
        ("list", "ListResponse"),
        ("entry", "Entry"),
        ("error", "Error"),
    ):
        reference = {"$ref": f"ardvark:/openapi.json#/components/schemas/{name}"}
        validator = jsonschema_rs.Draft202012Validator(reference, registry=schemas, validate_formats=True)
        for answer in answers[kind]:
            assert _complaints(validator, answer) == [], kind
        assert _complaints(validator, {"error": {"code": 1}})


# The grammar of List's filter and order is beyond JSON Schema: there a refusal is an answer like any other.
SCHEMATHESIS = """
[[operations]]
include-operation-id = "listAgents"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400"]
"""


async def test_schemathesis_finds_no_fault(web: FakeWeb, crawl_sqlite: OpenCrawl, tmp_path: Path) -> None:
    """All its checks in all its phases, against a running registry; the same requests every time."""
    config = tmp_path / "schemathesis.toml"
    config.write_text(SCHEMATHESIS)
    acme = web.site("acme")
    acme.manifest(
        entry(identifier="urn:air:acme.com:agent:assistant"), *(entry(f"n{n}", tags=["a"]) for n in range(30))
    )
    async with serving(crawl_sqlite, acme) as registry:
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("schemathesis"),
            f"--config-file={config}",
            "run",
            f"http://{registry.address}/openapi.json",
            f"--url=http://{registry.address}/api/v1",
            "--checks=all",
            "--max-examples=10",
            "--generation-deterministic",
            "--continue-on-failure",
            "--no-color",
            cwd=tmp_path,
            env={
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": str(ROOT),
                "SCHEMATHESIS_HOOKS": "tests.fakes.schemathesis_hooks",
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    assert b"Tested: 14" in out
