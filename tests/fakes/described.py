"""Answers held against the API's own description."""

from typing import Any

import jsonschema_rs

from tests.fakes.registry import Registry


async def complaints(registry: Registry, schema: str, value: Any) -> list[str]:
    """Say where a value differs from what `/openapi.json` says of it."""
    document = (await registry.get("/openapi.json")).json
    schemas = jsonschema_rs.Registry(
        [("ardvark:/openapi.json", document)], draft=jsonschema_rs.Draft202012, retriever=_refuse
    )
    reference = {"$ref": f"ardvark:/openapi.json#/components/schemas/{schema}"}
    validator = jsonschema_rs.Draft202012Validator(reference, registry=schemas, validate_formats=True)
    return [f"{list(error.instance_path)}: {error.message}" for error in validator.iter_errors(value)]


def _refuse(uri: str) -> Any:
    raise LookupError(f"nothing is fetched for a schema: {uri}")
