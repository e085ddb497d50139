"""The OpenAPI description of the interface, written by hand beside the handlers."""

from typing import Any

from weft.serve.limits import Limits
from weft.version import __version__

TEXT = {"type": "string"}
ONE_OR_MANY = {"oneOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}


def description(limits: Limits) -> dict[str, Any]:
    """OpenAPI 3.1.

    Args:
        limits: what a request may ask for.
    """
    translate = {
        "q": ONE_OR_MANY,
        "source": {"type": "string", "default": "auto", "description": "A language code, or auto."},
        "target": TEXT,
        "format": {"enum": ["text", "html"], "default": "text"},
        "alternatives": {"type": "integer", "minimum": 0, "maximum": limits.beam - 1},
    }
    complete = {
        "model": TEXT,
        "prompt": ONE_OR_MANY,
        "max_tokens": {"type": "integer", "minimum": 0, "maximum": limits.max_tokens, "default": 16},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2, "default": 1},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1, "default": 1},
        "n": {"type": "integer", "minimum": 1, "maximum": limits.beam, "default": 1},
        "stop": {"oneOf": [TEXT, {"type": "array", "items": TEXT, "maxItems": 4}]},
        "seed": {"type": "integer"},
        "logprobs": {"type": "integer", "minimum": 0, "maximum": limits.logprobs},
        "echo": {"type": "boolean", "default": False},
        "stream": {"type": "boolean", "default": False},
    }
    pairs = {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}, "maxItems": 64}
    drop = {**pairs, "description": "Units that say nothing: [layer, unit], as /api/runs counts layers."}
    predict = {
        "run": TEXT,
        "inputs": {"description": "A text, a series of numbers, a file as base64, or a list of them."},
        "drop": drop,
    }
    watch = {
        "run": TEXT,
        "text": TEXT,
        "target": TEXT,
        "prefix": TEXT,
        "drop": drop,
        "looks": {**pairs, "description": "Attention that is moved: [step from 1, source word from 0]."},
        "beam": {"type": "integer", "minimum": 1, "maximum": limits.beam},
    }
    look = {
        "run": TEXT,
        "text": TEXT,
        "target": TEXT,
        "inputs": {
            "type": "string",
            "description": "A picture or a recording as base64, in place of a text.",
        },
    }
    forms = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    name = {"name": "name", "in": "path", "required": True, "schema": TEXT}
    run = {"name": "run", "in": "query", "schema": TEXT}
    text = {"name": "text", "in": "query", "schema": TEXT}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Weft", "version": __version__, "description": "Trained runs over HTTP."},
        "paths": {
            "/translate": {"post": _post("Translate texts.", translate, ["q", "target"], forms)},
            "/detect": {"post": _post("Tell the served languages apart.", {"q": TEXT}, ["q"], forms)},
            "/languages": {"get": _get("What is translated into what.")},
            "/health": {"get": _get("Whether the server answers.")},
            "/health/live": {"get": _get("Whether the process lives.")},
            "/health/ready": {"get": _get("Whether requests are taken now; 503 where not.")},
            "/metrics": {"get": _get("Counts in Prometheus's format.", kind="text/plain")},
            "/v1/models": {"get": _get("The language models.")},
            "/v1/models/{name}": {"get": {**_get("One language model."), "parameters": [name]}},
            "/v1/completions": {"post": _post("Go on with prompts.", complete, [], forms[:1])},
            "/predict": {
                "post": _post(
                    "Classify, tag, forecast, summarise, fill gaps, caption, transcribe, draw.",
                    predict,
                    ["inputs"],
                    forms[:1],
                )
            },
            "/api/runs": {"get": _get("The runs that are served.")},
            "/api/curves": {"get": {**_get("Curves of a run's training."), "parameters": [run]}},
            "/inspect": {
                "get": {**_get("The page of weft inspect.", kind="text/html"), "parameters": [run, text]},
                "post": _post("The same, of a file too.", look, [], forms, kind="text/html"),
            },
            "/api/watch": {"post": _post("An answer as it comes.", watch, ["text"], forms[:1])},
        },
    }


def _get(summary: str, kind: str = "application/json") -> dict[str, Any]:
    return {"summary": summary, "responses": _responses(kind)}


def _post(
    summary: str,
    fields: dict[str, Any],
    required: list[str],
    kinds: tuple[str, ...],
    kind: str = "application/json",
) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": required}
    content = {kind: {"schema": schema} for kind in kinds}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": content},
        "responses": _responses(kind),
    }


def _responses(kind: str) -> dict[str, Any]:
    error = {"application/json": {"schema": {"type": "object"}}}
    said = {
        "400": "The request does not fit; the sentence says why.",
        "404": "No such run.",
        "409": "The run has no model yet.",
        "413": "The body is too large.",
        "429": "Too many wait; Retry-After says when.",
        "503": "It took too long, or the server is about to end.",
    }
    refusals = {status: {"description": why, "content": error} for status, why in said.items()}
    return {"200": {"description": "The answer.", "content": {kind: {}}}, **refusals}
