"""The OpenAPI description of the interface, made from the types of its requests and responses.

Read next: requests.py; responses.py; offered.py, what only a server with its runs knows.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from weft.serve import requests, responses
from weft.serve.forms import FORM_KINDS
from weft.serve.guard import COOKIE, FIELDS, FREE, is_open
from weft.serve.limits import ServerLimits
from weft.serve.offered import as_text, narrowed
from weft.serve.served import ServedRun
from weft.version import __version__

JSON, HTML, EVENTS = "application/json", "text/html", "text/event-stream"
BINARY = "application/octet-stream"
PLAIN, OPENMETRICS = "text/plain", "application/openmetrics-text"
FORMS = (JSON, *FORM_KINDS)
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
SENT, NAMED = ("408", "413"), ("404", "409")
COMPUTED = (*NAMED, "429")
RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
BEARER = {"WWW-Authenticate": {"description": "Bearer", "schema": {"type": "string"}}}


class Route(NamedTuple):
    """A method of an address.

    Args:
        summary: what it does.
        answer: the type of its response; None for none.
        request: the type of its query string (GET) or body (POST).
        accepts: content types of a body.
        kinds: content types of a response.
        refusals: statuses besides `EVERYWHERE` and those of API keys.
    """

    summary: str
    answer: Any = str
    request: type[msgspec.Struct] | None = None
    accepts: tuple[str, ...] = (JSON,)
    kinds: tuple[str, ...] = (JSON,)
    refusals: tuple[str, ...] = ()


_DETECTED, _LANGUAGES = list[responses.Detected], list[responses.Language]
_PREDICT = "Classify, tag, forecast, summarise, fill gaps, caption, transcribe, draw."
_COMPLETE = "Continue prompts; with stream, an event for each part and [DONE] at the end."
_TRANSLATE, _DETECT = "Translate texts.", "Detect the language of a text."

ROUTES = {
    "/translate": {
        "get": Route(_TRANSLATE, responses.Translated, requests.Translate, refusals=COMPUTED),
        "post": Route(_TRANSLATE, responses.Translated, requests.Translate, FORMS, refusals=COMPUTED),
    },
    "/translate_file": {
        "post": Route(
            "Translate a document.",
            responses.TranslatedFile,
            requests.TranslateFile,
            ("multipart/form-data",),
            refusals=COMPUTED,
        )
    },
    "/download_file/{name}": {"get": Route("A translated document.", kinds=(BINARY,), refusals=("404",))},
    "/suggest": {
        "post": Route(
            "Keep a better translation; 403 if the server keeps none.",
            responses.Suggested,
            requests.Suggest,
            FORMS,
        )
    },
    "/detect": {
        "get": Route(_DETECT, _DETECTED, requests.Detect),
        "post": Route(_DETECT, _DETECTED, requests.Detect, FORMS),
    },
    "/languages": {"get": Route("List the languages and their targets.", _LANGUAGES)},
    "/frontend/settings": {"get": Route("Settings of LibreTranslate's page.", responses.Settings)},
    "/health": {"get": Route("Whether the server answers.", responses.Health)},
    "/health/live": {"get": Route("Whether the process is alive.", responses.Health)},
    "/health/ready": {"get": Route("Whether requests are accepted now; 503 if not.", responses.Health)},
    "/metrics": {"get": Route("Counts in Prometheus's format.", kinds=(PLAIN, OPENMETRICS))},
    "/v1/models": {"get": Route("List the language models.", responses.Models)},
    "/v1/models/{name}": {"get": Route("One language model.", responses.Model, refusals=NAMED)},
    "/v1/completions": {
        "post": Route(
            _COMPLETE, responses.Completion, requests.Complete, kinds=(JSON, EVENTS), refusals=COMPUTED
        )
    },
    "/predict": {"post": Route(_PREDICT, responses.Predicted, requests.Predict, refusals=COMPUTED)},
    "/api/key": {"post": Route("Keep an API key in a cookie.", None, requests.SignIn, refusals=("409",))},
    "/api/runs": {"get": Route("List the runs.", list[responses.Run])},
    "/api/curves": {
        "get": Route("Curves of a run's training.", responses.Curves, requests.Chosen, refusals=NAMED)
    },
    "/inspect": {
        "get": Route("The page of weft inspect.", request=requests.Inspect, kinds=(HTML,), refusals=COMPUTED),
        "post": Route(
            "The same, also for a file.", str, requests.InspectFile, FORMS, kinds=(HTML,), refusals=COMPUTED
        ),
    },
    "/api/watch": {
        "post": Route(
            "Stream an answer while it is found.",
            responses.Watched,
            requests.Watch,
            kinds=(EVENTS,),
            refusals=COMPUTED,
        )
    },
}


def description(
    runs: Mapping[str, ServedRun] | None = None, limits: ServerLimits | None = None, *, keyed: bool = False
) -> dict[str, Any]:
    """OpenAPI 3.1.

    Args:
        runs: the served runs, which limit what some fields may contain.
        limits: limits of requests.
        keyed: whether requests need an API key.
    """
    routes = [route for methods in ROUTES.values() for route in methods.values()]
    types = [route.request for route in routes if route.request]
    types += [route.answer for route in routes if route.answer]
    types += [responses.Refused, responses.Failure]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    refs = dict(zip(map(str, types), schemas, strict=True))
    narrowed(components, runs or {}, (limits or ServerLimits()).items)
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Weft", "version": __version__, "description": "Trained runs over HTTP."},
        "paths": {
            path: {
                method: _operation(path, method, route, refs, components, keyed)
                for method, route in methods.items()
            }
            for path, methods in ROUTES.items()
        },
        "components": {"schemas": components},
    }
    if keyed:
        found["components"]["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE},
        }
    return found


def _operation(
    path: str, method: str, route: Route, refs: dict[str, Any], components: dict[str, Any], keyed: bool
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": route.summary,
        "responses": _responses(path, method, route, refs, keyed),
    }
    if keyed:  # an empty requirement: the key may be the field api_key
        found["security"] = [] if is_open(path) else [{"key": []}, {"cookie": []}]
        found["security"] += [{}] if path in FIELDS else []
    if "{name}" in path:
        found["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]
    elif route.request and method == "get":
        form = as_text(components[route.request.__name__])
        found["parameters"] = [
            {"name": name, "in": "query", "required": name in form.get("required", ()), "schema": schema}
            for name, schema in form["properties"].items()
        ]
    elif route.request:
        body = components[route.request.__name__]
        content = {
            kind: {"schema": refs[str(route.request)] if kind == JSON else as_text(body)}
            for kind in route.accepts
        }
        required = bool(body.get("required"))
        found["requestBody"] = {"required": required, "content": content}
    return found


def _responses(path: str, method: str, route: Route, refs: dict[str, Any], keyed: bool) -> dict[str, Any]:
    """The responses of an operation by status."""
    statuses = {*EVERYWHERE, *route.refusals, *(SENT if method == "post" else ())}
    if keyed and not is_open(path):
        statuses |= {"401"} if path in FREE else {"401", "429"}
    error = refs[str(responses.Failure if path.startswith("/v1/") else responses.Refused)]
    found: dict[str, Any] = {}
    for status in sorted(statuses):
        found[status] = {"description": REFUSALS[status], "content": {JSON: {"schema": error}}}
        if status in ("429", "503"):
            found[status]["headers"] = RETRY
        if status == "503":  # the second, where a connection is refused before its request is read
            found[status]["content"][PLAIN] = {"schema": {"type": "string"}}
        elif status == "401":
            found[status]["headers"] = BEARER
    if path == "/health/ready":
        found["503"] = {
            "description": "Not now; trouble says why.",
            "headers": RETRY,
            "content": {JSON: {"schema": refs[str(responses.Health)]}},
        }
    if not route.answer:
        return {"204": {"description": "Done."}, **found}
    answer = refs[str(route.answer)]
    content = {kind: {"schema": _event(answer, path) if kind == EVENTS else answer} for kind in route.kinds}
    return {"200": {"description": "The answer.", "content": content}, **found}


def _event(answer: dict[str, Any], path: str) -> dict[str, Any]:
    """One server-sent event; its data is JSON."""
    data: dict[str, Any] = {"type": "string", "contentMediaType": JSON, "contentSchema": answer}
    if path.startswith("/v1/"):
        data = {"anyOf": [data, {"const": "[DONE]"}]}
    return {"type": "object", "properties": {"data": data}, "required": ["data"]}
