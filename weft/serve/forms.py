"""Read requests (JSON, form, multipart, query string) as typed objects, and write answers and refusals.

FastAPI reads JSON itself. LibreTranslate's routes take the same fields in any of the four forms: `fields_of`.
Read next: schemas.py, the types; bodies.py; translation.py and completions.py, which use them.
"""

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from weft.errors import WeftError
from weft.serve.batcher import Batcher
from weft.serve.job import BatchJob
from weft.serve.limits import Refusal, kind_of
from weft.serve.schemas import Failure, Fields, Refused
from weft.store import jsonfile

Form = TypeVar("Form", bound=Fields)
FORM_KINDS = ("application/x-www-form-urlencoded", "multipart/form-data")
ADMIT = "weft.admit"
"""Name in the scope of a function that checks a request's `api_key`; guard.py sets it."""


class Gone(Exception):
    """Raised when the client has closed the connection before its answer was ready."""


class Upload(NamedTuple):
    """A file in a form."""

    name: str
    data: bytes


class Json(JSONResponse):
    """A JSON response in ASCII, so that no text of a client can make it invalid."""

    def render(self, content: Any) -> bytes:
        """The encoded body."""
        return dumped(content)


def dumped(content: Any) -> bytes:
    """An object as JSON in ASCII."""
    return json.dumps(content, allow_nan=False).encode("ascii")


def fields_of(form: type[Form]) -> Callable[[Request], Awaitable[Form]]:
    """A dependency that reads a request in any form as one of the types of schemas.py."""

    async def read(request: Request) -> Form:
        return typed(await fields(request), form, strict=_is_json(request))

    return read


def typed(given: Mapping[str, Any], form: type[Form], *, strict: bool = False) -> Form:
    """The fields of a request as one of the types of schemas.py.

    Raises:
        Refusal: a field has another type, is outside its range, or is unknown to a form that forbids unknown
            fields.
    """
    try:
        return form.model_validate(given, strict=strict, context={"form": not strict})
    except ValidationError as error:
        raise refusal_of(error.errors(include_url=False), given, form) from None


async def fields(request: Request) -> dict[str, Any]:
    """The fields of a request, from its query string and its body; the body takes precedence.

    Raises:
        Refusal: the body does not match its content type, or an API key is required.
    """
    if "api_key" in request.query_params:
        admit(request, request.query_params["api_key"])
    given = await _fields(request)
    admit(request, given.get("api_key"))
    return given


def admit(request: Request, key: object) -> None:
    """Check the key of a request, once."""
    if ADMIT in request.scope:
        request.scope.pop(ADMIT)(key)


async def _fields(request: Request) -> dict[str, Any]:
    _check_utf8(request.scope["query_string"], "query string")
    given = _grouped(request.query_params.multi_items())
    if request.method in ("GET", "HEAD"):
        return given
    kind = _kind(request)
    if kind in FORM_KINDS:
        if kind == FORM_KINDS[0]:
            _check_utf8(await request.body(), "form")
        return given | await _form(request)
    body = await request.body()
    return given | _json(body) if body else given


def _grouped(items: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A value for each name, or a list of them for a name that comes more than once."""
    found: dict[str, list[Any]] = {}
    for name, value in items:
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def _check_utf8(encoded: bytes, what: str) -> None:
    """Refuse characters that the reader of a form would replace by U+FFFD."""
    try:
        unquote_to_bytes(encoded).decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal(400, f"the {what} is not UTF-8; encode its text as UTF-8") from None


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_form(request: Request) -> bool:
    """Whether a request comes as a form or a query string, whose fields are all text."""
    return not _is_json(request)


def _is_json(request: Request) -> bool:
    return (
        request.method not in ("GET", "HEAD")
        and _kind(request) not in FORM_KINDS
        and not request.query_params
    )


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = jsonfile.parse(body)
    except ValueError:
        raise Refusal(400, "the body is not valid JSON; send an object with the request's fields") from None
    if not isinstance(found, dict):
        raise Refusal(400, "expected a JSON object with the request's fields, got other JSON")
    return found


async def _form(request: Request) -> dict[str, Any]:
    try:
        async with request.form(max_files=1, max_fields=200) as form:
            return _grouped(
                [
                    (
                        name,
                        Upload(one.filename or "", await one.read()) if isinstance(one, UploadFile) else one,
                    )
                    for name, one in form.multi_items()
                ]
            )
    except (HTTPException, ValueError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(
            400, "the form cannot be read; send text fields and at most one file, encoded as UTF-8"
        ) from None


async def answered(request: Request, batcher: Batcher, job: BatchJob) -> list[Any]:
    """The answers of a job. If the client disconnects, its place in the queue becomes free.

    Raises:
        Gone: the client has disconnected.
        Refusal: as Batcher.ask.
    """
    asked = asyncio.ensure_future(batcher.ask(job))
    left = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({asked, left}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            raise Gone
        return asked.result()
    finally:
        left.cancel()
        asked.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def refusal_of(errors: Sequence[Mapping[str, Any]], given: Any, form: type[Fields] | None = None) -> Refusal:
    """The first of a request's errors that pydantic found, as a sentence.

    Args:
        errors: as pydantic lists them, without "body" or "query" at the beginning of a place.
        given: the fields of the request.
        form: their type.
    """
    if not isinstance(given, Mapping) or form is None:
        return Refusal(400, "expected a JSON object with the request's fields, got other JSON")
    unknown = next((one["loc"] for one in errors if one["type"] == "extra_forbidden"), None)
    if unknown and len(unknown) == 1:
        name = str(unknown[0])[:40].encode("ascii", "backslashreplace").decode()
        sentence = f"{name}: unknown parameter; supported: {', '.join(form.model_fields)}"
        return Refusal(400, sentence, param=name, code="unknown_parameter")
    first = errors[0]
    if first["type"].startswith("surrogate:"):
        name = first["type"].partition(":")[2]
        return Refusal(400, f"{name}: {first['msg']}", param=name)
    name = str(first["loc"][0])
    places = [one["loc"] for one in errors if one["loc"][0] == name]
    value = given.get(name)
    for place in max(places, key=len)[1:]:
        if isinstance(place, int) and isinstance(value, list):
            value = value[place]
    sentence = f"{name}: expected {_expected(_schemas(form)[name])}, got {_shown(value)}"
    return Refusal(400, sentence, param=name)


class _Untitled(GenerateJsonSchema):
    """Schemas without the titles that pydantic makes of names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@functools.cache
def _schemas(form: type[Fields]) -> dict[str, Any]:
    """The JSON schema of each field of a request."""
    found: dict[str, Any] = form.model_json_schema(schema_generator=_Untitled)["properties"]
    return found


def _expected(schema: dict[str, Any]) -> str:
    """The allowed values of a field, as text for people."""
    if "title" in schema:
        return str(schema["title"])
    if "$ref" in schema:
        return "an object as in /openapi.json"
    if "anyOf" in schema:
        return " or ".join(_expected(one) for one in schema["anyOf"] if one != {"type": "null"})
    if "enum" in schema:
        return " or ".join(sorted(schema["enum"], reverse=True))
    kind = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "text"}
    bounds = f" from {schema['minimum']} to {schema['maximum']}" if "minimum" in schema else ""
    return kind[schema["type"]] + bounds


def _shown(value: Any) -> str:
    """A value of a client, as text for people; long ones by their kind."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)[:40] if abs(value) < 10**30 else "a large number"
    if isinstance(value, str) and 0 < len(value) <= 40:
        return json.dumps(value)
    if value in ("", []):
        return "an empty text" if value == "" else "an empty list"
    return kind_of(value)


async def invalid(request: Request, error: Exception) -> Response:
    """The answer to a request that FastAPI cannot read as the type of its route."""
    assert isinstance(error, RequestValidationError)
    errors = [{**one, "loc": one["loc"][1:]} for one in error.errors()]
    if any(one["type"] == "json_invalid" for one in errors):
        refusal = Refusal(400, "the body is not valid JSON; send an object with the request's fields")
    else:
        errors = [one for one in errors if one["loc"] or one["type"].startswith("surrogate")]
        given = error.body if errors and error.body is not None else {}
        if not errors or isinstance(given, bytes):
            refusal = refusal_of([], None)
        else:
            refusal = refusal_of(errors, given or dict(request.query_params), _form_of(request))
    return refusing(request, refusal)


def _form_of(request: Request) -> type[Fields] | None:
    """The type of the body, or of the query string, of the route of a request."""
    hints = request.scope["endpoint"].__annotations__.values()
    kinds = [getattr(one, "__origin__", one) for one in hints]
    return next((one for one in kinds if isinstance(one, type) and issubclass(one, Fields)), None)


async def refused(request: Request, error: Exception) -> Response:
    """The answer to a request that a handler refuses."""
    refusal = error if isinstance(error, Refusal) else Refusal(400, str(error))
    return refusing(request, refusal)


async def gone(request: Request, error: Exception) -> Response:
    """For the log and the metrics, as the client is gone."""
    return Response(status_code=499)


def refusing(request: Request, refusal: Refusal) -> Json:
    """A refusal as the response of an address."""
    headers = {"Retry-After": str(refusal.retry_after)} if refusal.retry_after else {}
    if refusal.closes:
        headers["Connection"] = "close"
    return Json(error_form(request.url.path)(refusal), refusal.status, headers)


def plain(refusal: Refusal) -> Refused:
    """An error in LibreTranslate's format, used by all addresses except /v1."""
    return {"error": refusal.sentence}


def of_openai(refusal: Refusal) -> Failure:
    """An error in OpenAI's format, used by all addresses below /v1."""
    kind = "invalid_request_error" if refusal.status < 500 else "server_error"
    code = refusal.code
    if refusal.status == 429:
        kind, code = "rate_limit_error", code or "rate_limit_exceeded"
    return {"error": {"message": refusal.sentence, "type": kind, "param": refusal.param, "code": code}}


def error_form(path: str) -> Callable[[Refusal], Refused | Failure]:
    """The format of the errors of an address, also of one that does not exist."""
    return of_openai if path == "/v1" or path.startswith("/v1/") else plain


HANDLERS: dict[Any, Any] = {
    RequestValidationError: invalid,
    Refusal: refused,
    WeftError: refused,
    Gone: gone,
}
