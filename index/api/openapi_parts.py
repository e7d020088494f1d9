"""What the parts of the API's description are made of. Pure."""

from typing import Any

IDENTIFIER = "^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$"


def ref(name: str) -> dict[str, str]:
    """Refer to a schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def array(name: str) -> dict[str, Any]:
    """Describe a list of a schema."""
    return {"type": "array", "items": ref(name)}


def closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """Describe an object that has no other members."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def responses() -> dict[str, Any]:
    """Describe the failures, all in the one shape."""
    content = {"application/json": {"schema": ref("Error")}}
    return {
        "InvalidArgument": {"description": "The request is not well formed.", "content": content},
        "PermissionDenied": {"description": "What is asked for is withheld.", "content": content},
        "NotFound": {"description": "Nothing has this name.", "content": content},
        "Gone": {"description": "What is asked for is no longer kept.", "content": content},
        "PayloadTooLarge": {"description": "The request body is too large.", "content": content},
        "UnsupportedMediaType": {"description": "The request body is not JSON.", "content": content},
        "InternalError": {"description": "The registry failed.", "content": content},
    }


def answers(schema: str, *failures: str) -> dict[str, Any]:
    """Describe the answers of an operation: one schema, and the failures by name."""
    statuses = {
        "InvalidArgument": "400",
        "PermissionDenied": "403",
        "NotFound": "404",
        "PayloadTooLarge": "413",
        "UnsupportedMediaType": "415",
        "InternalError": "500",
    }
    answers: dict[str, Any] = {
        "200": {"description": "The answer.", "content": {"application/json": {"schema": ref(schema)}}}
    }
    for name in (*failures, "InternalError"):
        answers[statuses[name]] = {"$ref": f"#/components/responses/{name}"}
    return answers


def body(model: str) -> dict[str, Any]:
    """Describe a request body."""
    return {"required": True, "content": {"application/json": {"schema": ref(model)}}}


def parameter(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
    """Describe an optional query parameter."""
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": text}
