"""The contents of a field for people: what was expected, what was found. Read next: forms.py."""

import json
from typing import Any

from weft.serve.limits import kind_of


def expected(schema: dict[str, Any]) -> str:
    """The allowed values of a field, as text for people."""
    if "title" in schema:
        return str(schema["title"])
    if "$ref" in schema:
        return "an object as in /openapi.json"
    if "anyOf" in schema:
        return " or ".join(expected(one) for one in schema["anyOf"] if one != {"type": "null"})
    if "enum" in schema:
        return " or ".join(sorted(schema["enum"], reverse=True))
    kind = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "text"}
    bounds = f" from {schema['minimum']} to {schema['maximum']}" if "minimum" in schema else ""
    return kind[schema["type"]] + bounds


def shown(value: Any) -> str:
    """A value of a client, as text for people; long ones by their kind."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)[:40]
    if isinstance(value, str) and 0 < len(value) <= 40:
        return json.dumps(value)
    return (
        {"a text": "an empty text", "a list": "an empty list"}[kind_of(value)]
        if value in ("", [])
        else kind_of(value)
    )
