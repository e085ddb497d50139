"""The OpenAPI description: what FastAPI makes of the routes, and what it cannot know.

Requests that come in four forms, refusals, keys, and what the served runs accept: a client that reads the
description knows what this server answers. Read next: schemas.py; app.py, the routes.
"""

import bisect
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from weft.errors import DataError
from weft.serve import schemas
from weft.serve.completions import writer_of
from weft.serve.forms import FORM_KINDS
from weft.serve.guard import COOKIE, FIELDS, FREE, is_open
from weft.serve.limits import BEAM, ServerLimits
from weft.serve.predicting import WANTED
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
    "415": "The body is compressed, or its charset is not UTF-8.",
    "421": "The Host header names none of the names of this server.",
    "429": "Too many requests are waiting or in progress, or the limit of the key is reached.",
    "431": "The headers are too large.",
    "500": "The server failed; its log says why.",
    "503": "The time limit was reached, too much is in progress, or the server is shutting down.",
}
EVERYWHERE = ("400", "403", "421", "431", "500", "503")
SENT = ("408", "413", "415", "429")
RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
BEARER = {"WWW-Authenticate": {"description": "Bearer", "schema": {"type": "string"}}}
MANY_FORMS: dict[str, type[schemas.Fields]] = {
    "/translate": schemas.Translate,
    "/detect": schemas.Detect,
    "/suggest": schemas.Suggest,
    "/inspect": schemas.InspectFile,
}
"""Addresses that take their fields as JSON, as either kind of form, or as a query string (GET)."""

WORDS = {"type": "string", "pattern": r"\S"}
FILE = {"type": "string", "contentEncoding": "base64", "minLength": 1}
NUMERIC = ("integer", "number")
EMPTY = {"const": ""}
NULL = {"type": "null"}
REQUESTS = ("Translate", "Complete", "Watch")
NUMBERS = {"anyOf": [{"type": "array", "items": {"type": "number"}, "minItems": 1}, WORDS]}


def may(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route besides `EVERYWHERE`, for FastAPI."""
    return {status: {"description": REFUSALS[str(status)]} for status in statuses}


def streams(answer: Any, *, done: bool = False) -> dict[str, Any]:
    """Server-sent events as the content of a response."""
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
    """OpenAPI 3.1."""
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
    _narrow(components, runs, limits.items)
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
        content = {FORM_KINDS[1]: {"schema": _as_text(components["TranslateFile"])}}
        operation["requestBody"] = {"required": True, "content": content}
    elif path in MANY_FORMS and method == "post":
        name = MANY_FORMS[path].__name__
        form = components[name]
        content = {kind: {"schema": _as_text(form)} for kind in FORM_KINDS}
        content[JSON] = {"schema": {"$ref": f"#/components/schemas/{name}"}}
        operation["requestBody"] = {"required": bool(form.get("required")), "content": content}
    elif path in MANY_FORMS:
        form = _as_text(components["Inspect" if path == "/inspect" else MANY_FORMS[path].__name__])
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


def _narrow(components: dict[str, Any], runs: Mapping[str, ServedRun], items: int) -> None:
    """Limit the fields of requests to what the runs accept, in place."""
    for form in (components[one] for one in REQUESTS if one in components):
        _nullable(form)
    components["Translate"]["properties"]["q"]["anyOf"][0]["minLength"] = 1
    ready = [run for run in runs.values() if run.ready]
    directions = sorted({pair for run in ready for pair in run.directions()})
    if directions:
        _languages(components["Translate"], directions)
        file = components["TranslateFile"]["properties"]
        file["source"]["enum"] = ["auto", *sorted({source for source, _ in directions})]
        file["target"]["enum"] = sorted({target for _, target in directions})
    known = {domain for run in ready if run.rewriter is not None for domain in run.rewriter.domains}
    for form in (components["Translate"], components["TranslateFile"]):
        form["properties"]["domain"]["enum"] = ["", *sorted(known)]
    _watched(components["Watch"], ready)
    _inspected(components["InspectFile"], ready)
    _completed(components["Complete"], [run for run in ready if run.continues], items)
    predicting = [run for run in ready if run.predicts]
    if predicting:
        _inputs(components["Predict"], predicting)
    elif ready:  # their answers have other addresses
        components["Predict"]["not"] = _fields(run={"enum": [run.name for run in ready]})


def _as_text(form: dict[str, Any]) -> dict[str, Any]:
    """The schema of a form or query: without null; an empty number is missing, a list of one is one."""
    fields = {}
    for name, schema in form["properties"].items():
        first, *others = schema.get("anyOf", [schema])
        if "type" in first:
            empty = [EMPTY] if first["type"] in NUMERIC and NULL in others else []
            others = [one for one in others if one != NULL] + empty
        if "minLength" in first and others and others[0].get("type") == "array":
            others[0] = {**others[0], "items": {**others[0]["items"], "minLength": 1}}
        about = {key: value for key, value in schema.items() if key != "anyOf"}
        fields[name] = {**about, "anyOf": [first, *others]} if others else {**about, **first}
    found = {**form, "properties": fields}
    if "anyOf" in form:
        found["anyOf"] = [_without_null(one) for one in form["anyOf"]]
    return found


def _without_null(case: dict[str, Any]) -> dict[str, Any]:
    fields = {name: False if schema == NULL else schema for name, schema in case["properties"].items()}
    return {**case, "properties": fields}


def _nullable(form: dict[str, Any]) -> None:
    """Say that a null number counts as missing, see `schemas.Fields`."""
    for name, schema in form["properties"].items():
        if schema.get("type") in NUMERIC and name not in form.get("required", ()):
            about = {key: schema.pop(key) for key in ("title", "description", "default") if key in schema}
            form["properties"][name] = {**about, "anyOf": [schema, NULL]}


def _watched(form: dict[str, Any], runs: list[ServedRun]) -> None:
    """An empty text can only be continued."""
    going = [run.name for run in runs if run.continues]
    first = [None, ""] if runs and runs[0].continues else []
    form["anyOf"] = [{"properties": {"text": WORDS}}, _fields(run={"enum": [*going, *first]})]


def _inspected(form: dict[str, Any], runs: list[ServedRun]) -> None:
    """A file for a run that reads files, a text for one that reads texts; by default the first run."""
    cases = []
    for number, run in enumerate(runs):
        reads: dict[str, Any] = {"inputs": {"anyOf": [FILE, NULL]} if run.reads in WANTED else NULL}
        reads |= {} if run.reads == "text" else {"text": {"const": ""}}
        cases.append(_fields(run={"enum": [run.name, *([None, ""] if not number else [])]}))
        cases[-1]["properties"] |= reads
    if cases:
        cases[0]["required"].remove("run")
        form["anyOf"] = cases


def _completed(form: dict[str, Any], runs: list[ServedRun], items: int) -> None:
    """All choices together are limited; `best_of` is `n`, or left out; `stream_options` are for streams."""
    form["anyOf"] = [
        _fields(n={"const": count}, best_of={"enum": [count, None]}) for count in range(1, BEAM + 1)
    ]
    form["anyOf"][0] = {"properties": {key: {"enum": [1, None]} for key in ("n", "best_of")}}
    for number, case in enumerate(form["anyOf"], 1):
        case["required"] = ["n"] if number > 1 else []
        one = {"type": "array", "items": {"type": "integer"}}
        case["properties"]["prompt"] = {"anyOf": [{"type": "string"}, one, {"maxItems": items // number}]}
    options = {"properties": {"stream_options": NULL}}
    form["allOf"] = [{"anyOf": [options, _fields(stream={"const": True})]}]
    text: dict[str, Any] = {"type": "string"}
    if runs:
        token = {"type": "integer", "minimum": 0, "maximum": min(map(_last_number, runs))}
        kinds = [text, _list_of(text), _list_of(token), _list_of(_list_of(token))]
        form["properties"]["prompt"]["anyOf"] = kinds


def _last_number(run: ServedRun) -> int:
    """The largest number of a token."""
    vocabulary = writer_of(run).vocabulary

    def unknown(number: int) -> bool:
        try:
            return not vocabulary.numbered([number])
        except DataError:
            return True

    return bisect.bisect_left(range(2**24), True, key=unknown) - 1


def _list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema, "minItems": 1}


def _languages(form: dict[str, Any], directions: list[tuple[str, str]]) -> None:
    """The pairs of languages, and the languages alone, which is all that a query string can say."""
    sources = sorted({source for source, _ in directions})
    targets = sorted({target for _, target in directions})
    form["properties"]["source"]["enum"] = ["auto", *sources]
    form["properties"]["target"]["enum"] = targets
    if len(directions) < len(sources) * len(targets):
        form["anyOf"] = [
            _fields(source={"enum": [one]}, target={"enum": [other]}) for one, other in directions
        ]
        form["anyOf"].append(_fields(source={"enum": ["auto"]}))


def _inputs(form: dict[str, Any], runs: list[ServedRun]) -> None:
    """The inputs of each run; the first one answers if none is named."""
    form["anyOf"] = [
        _fields(run={"enum": [run.name, *([None, ""] if not number else [])]}, inputs=_input(run))
        for number, run in enumerate(runs)
    ]
    form["anyOf"][0]["required"].remove("run")


def _input(run: ServedRun) -> dict[str, Any]:
    one = FILE if run.reads in WANTED else NUMBERS if run.reads == "numbers" else WORDS
    return {"anyOf": [one, _list_of(one)]}


def _fields(**schemas: Any) -> dict[str, Any]:
    return {"properties": schemas, "required": list(schemas)}
