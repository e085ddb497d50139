"""The OpenAPI description of the interface, made from the types of its requests and responses.

Read next: requests.py; responses.py.
"""

from typing import Any, NamedTuple

import msgspec

from weft.serve import requests, responses
from weft.version import __version__

JSON = "application/json"
FORMS = (JSON, "application/x-www-form-urlencoded", "multipart/form-data")
REFUSALS = {
    "400": "The request does not fit; the error says why.",
    "404": "No such run.",
    "409": "The run has no model yet.",
    "413": "The body is too large.",
    "429": "Too many requests are waiting; Retry-After says when to try again.",
    "503": "The time limit was reached, or the server is shutting down.",
}


class Route(NamedTuple):
    """A method of an address.

    Args:
        summary: what it does.
        answer: the type of its response.
        request: the type of its query string (GET) or body (POST).
        accepts: content types of a body.
        kind: the content type of a response.
    """

    summary: str
    answer: Any = str
    request: type[msgspec.Struct] | None = None
    accepts: tuple[str, ...] = FORMS
    kind: str = JSON


ROUTES = {
    "/translate": {"post": Route("Translate texts.", responses.Translated, requests.Translate)},
    "/detect": {"post": Route("Detect the language of a text.", list[responses.Detected], requests.Detect)},
    "/languages": {"get": Route("List the languages and their targets.", list[responses.Language])},
    "/frontend/settings": {"get": Route("Settings of LibreTranslate's page.", responses.Settings)},
    "/health": {"get": Route("Whether the server answers.", responses.Health)},
    "/health/live": {"get": Route("Whether the process is alive.", responses.Health)},
    "/health/ready": {"get": Route("Whether requests are accepted now; 503 if not.", responses.Health)},
    "/metrics": {"get": Route("Counts in Prometheus's format.", kind="text/plain")},
    "/v1/models": {"get": Route("List the language models.", responses.Models)},
    "/v1/models/{name}": {"get": Route("One language model.", responses.Model)},
    "/v1/completions": {"post": Route("Continue prompts.", responses.Completion, requests.Complete, (JSON,))},
    "/predict": {
        "post": Route(
            "Classify, tag, forecast, summarise, fill gaps, caption, transcribe, draw.",
            responses.Predicted,
            requests.Predict,
            (JSON,),
        )
    },
    "/api/key": {"post": Route("Keep an API key in a cookie.", None, requests.SignIn, (JSON,))},
    "/api/runs": {"get": Route("List the runs.", list[responses.Run])},
    "/api/curves": {"get": Route("Curves of a run's training.", responses.Curves, requests.Chosen)},
    "/inspect": {
        "get": Route("The page of weft inspect.", request=requests.Inspect, kind="text/html"),
        "post": Route("The same, also for a file.", request=requests.InspectFile, kind="text/html"),
    },
    "/api/watch": {
        "post": Route(
            "Stream an answer while it is found.",
            request=requests.Watch,
            accepts=(JSON,),
            kind="text/event-stream",
        )
    },
}


def description() -> dict[str, Any]:
    """OpenAPI 3.1."""
    routes = [route for methods in ROUTES.values() for route in methods.values()]
    types = [route.request for route in routes if route.request] + [route.answer for route in routes]
    types += [responses.Refused, responses.Failure]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    refs = dict(zip(map(str, types), schemas, strict=True))
    paths = {
        path: {method: _operation(path, method, route, refs, components) for method, route in methods.items()}
        for path, methods in ROUTES.items()
    }
    info = {"title": "Weft", "version": __version__, "description": "Trained runs over HTTP."}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": components}}


def _operation(
    path: str, method: str, route: Route, refs: dict[str, Any], components: dict[str, Any]
) -> dict[str, Any]:
    error = refs[str(responses.Failure if path.startswith("/v1/") else responses.Refused)]
    answers = {status: _content(why, JSON, error) for status, why in REFUSALS.items()}
    answers["200"] = _content("The answer.", route.kind, refs[str(route.answer)])
    found: dict[str, Any] = {"summary": route.summary, "responses": answers}
    if "{name}" in path:
        found["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]
    elif route.request and method == "get":
        fields = components[route.request.__name__]["properties"]
        found["parameters"] = [{"name": name, "in": "query", "schema": fields[name]} for name in fields]
    elif route.request:
        content = {kind: {"schema": refs[str(route.request)]} for kind in route.accepts}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _content(why: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": why, "content": {kind: {"schema": schema}}}
