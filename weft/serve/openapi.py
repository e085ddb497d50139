"""The OpenAPI description: what FastAPI makes of the routes, and what it cannot know.

Requests that come in four forms, refusals, keys, and what the served runs accept. Read next: schemas.py;
app.py, the routes; offered.py, what only a server with its runs knows.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from weft.serve import schemas
from weft.serve.forms import FORM_KINDS
from weft.serve.guard import COOKIE, FIELDS, FREE, is_open
from weft.serve.limits import ServerLimits
from weft.serve.offered import as_text, narrowed
from weft.serve.served import ServedRun
from weft.version import __version__

JSON, EVENTS, PLAIN = "application/json", "text/event-stream", "text/plain"
REFUSALS = {
    "400": "The request does not fit; the error says why.",
    "401": "An API key is required.",
    "403": "The API key is unknown, or a page of another web site sent the request.",
    "404": "No such run, or no such part of it.",
    "408": "The body did not arrive in time.",
    "409": "The run has no model yet.",
    "413": "The body is too large.",
    "421": "The Host header names none of the names of this server.",
    "429": "Too many requests are waiting, or the limit of the key is reached.",
    "500": "The server failed; its log says why.",
    "503": "The time limit was reached, too many connections are open, or the server is shutting down.",
}
EVERYWHERE = ("400", "403", "421", "500", "503")
SENT = ("408", "413")
RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
BEARER = {"WWW-Authenticate": {"description": "Bearer", "schema": {"type": "string"}}}
MANY_FORMS: dict[str, type[schemas.Fields]] = {
    "/translate": schemas.Translate,
    "/detect": schemas.Detect,
    "/suggest": schemas.Suggest,
    "/inspect": schemas.InspectFile,
}
"""Addresses that take their fields as JSON, as either kind of form, or as a query string (GET)."""


def may(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route besides `EVERYWHERE`, for FastAPI."""
    return {status: {"description": REFUSALS[str(status)]} for status in statuses}


def streams(answer: Any, *, done: bool = False) -> dict[str, Any]:
    """Server-sent events as the content of a response.

    Args:
        answer: the type of the JSON in each event.
        done: whether `[DONE]` is the last.
    """
    about = TypeAdapter(answer).json_schema(ref_template="#/components/schemas/{model}")
    parts = about.pop("$defs", {})
    if parts:
        about = {**about, "$defs": parts}
    data: dict[str, Any] = {"type": "string", "contentMediaType": JSON, "contentSchema": about}
    if done:
        data = {"anyOf": [data, {"const": "[DONE]"}]}
    return {EVENTS: {"schema": {"type": "object", "properties": {"data": data}, "required": ["data"]}}}


def description(
    app: FastAPI, runs: Mapping[str, ServedRun], limits: ServerLimits, *, keyed: bool = False
) -> dict[str, Any]:
    """OpenAPI 3.1.

    Args:
        app: its routes.
        runs: the served runs, which limit what some fields may contain.
        limits: limits of requests.
        keyed: whether requests need an API key.
    """
    found = get_openapi(
        title="Weft", version=__version__, description="Trained runs over HTTP.", routes=app.routes
    )
    components = found["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):  # refusals are 400 and one sentence
        components.pop(name, None)
    types: list[type[schemas.Fields]] = [*MANY_FORMS.values(), schemas.Inspect, schemas.TranslateFile]
    _, shared = models_json_schema(
        [(one, "validation") for one in types], ref_template="#/components/schemas/{model}"
    )
    components |= shared["$defs"]
    for name in ("Refused", "Failure"):
        about = TypeAdapter(getattr(schemas, name)).json_schema(ref_template="#/components/schemas/{model}")
        components |= about.pop("$defs", {})
        components[name] = about
    narrowed(components, runs, limits.items)
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            _request(path, method, operation, components)
            _refusals(path, method, operation, keyed)
            if keyed:  # an empty requirement: the key may be the field api_key
                operation["security"] = [] if is_open(path) else [{"key": []}, {"cookie": []}]
                operation["security"] += [{}] if path in FIELDS else []
    if keyed:
        found["components"]["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE},
        }
    return found


def _request(path: str, method: str, operation: dict[str, Any], components: dict[str, Any]) -> None:
    """Describe the request of a route that FastAPI does not read itself."""
    if path == "/translate_file":
        content = {FORM_KINDS[1]: {"schema": as_text(components["TranslateFile"])}}
        operation["requestBody"] = {"required": True, "content": content}
    elif path in MANY_FORMS and method == "post":
        name = MANY_FORMS[path].__name__
        form = components[name]
        content = {kind: {"schema": as_text(form)} for kind in FORM_KINDS}
        content[JSON] = {"schema": {"$ref": f"#/components/schemas/{name}"}}
        operation["requestBody"] = {"required": bool(form.get("required")), "content": content}
    elif path in MANY_FORMS:
        form = as_text(components["Inspect" if path == "/inspect" else MANY_FORMS[path].__name__])
        operation["parameters"] = [
            {"name": name, "in": "query", "required": name in form.get("required", ()), "schema": schema}
            for name, schema in form["properties"].items()
        ]


def _refusals(path: str, method: str, operation: dict[str, Any], keyed: bool) -> None:
    """Add the refusals of an operation by status."""
    responses = operation["responses"]
    responses.pop("422", None)
    ready = responses.get("503") if path == "/health/ready" else None
    statuses = {*EVERYWHERE, *(SENT if method == "post" else ()), *(set(responses) & set(REFUSALS))}
    if keyed and not is_open(path):
        statuses |= {"401"} if path in FREE else {"401", "429"}
    error = {"$ref": f"#/components/schemas/{'Failure' if path.startswith('/v1/') else 'Refused'}"}
    for status in sorted(statuses):
        about: dict[str, Any] = {"description": REFUSALS[status], "content": {JSON: {"schema": error}}}
        if status in ("429", "503"):
            about["headers"] = RETRY
        elif status == "401":
            about["headers"] = BEARER
        if status == "503":  # the second, where a connection is refused before its request is read
            about["content"][PLAIN] = {"schema": {"type": "string"}}
        responses[status] = about
    if ready:
        responses["503"] = {**ready, "headers": RETRY}
