"""Read requests (JSON, form, multipart, query string) as typed objects, and write answers.

Read next: bodies.py; requests.py, the types; translation.py and completions.py, which use them.
"""

import asyncio
import functools
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from weft.errors import WeftError
from weft.serve.batcher import Batcher
from weft.serve.bodies import Gone, admit, body_of
from weft.serve.expected import expected, shown
from weft.serve.job import BatchJob
from weft.serve.limits import Refusal, ServerLimits
from weft.serve.responses import Failure, Mistake, Refused
from weft.store import jsonfile

Form = TypeVar("Form", bound=msgspec.Struct)
Handler = Callable[[Request], Awaitable[Response]]
FORM_KINDS = ("application/x-www-form-urlencoded", "multipart/form-data")


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
    """An object as JSON in ASCII; it may contain structs."""
    return json.dumps(content, allow_nan=False, default=msgspec.to_builtins).encode("ascii")


async def read(request: Request, limits: ServerLimits, form: type[Form]) -> Form:
    """A request as one of the types of requests.py.

    Forms and query strings contain only text, so numbers may be given as text there, but not in JSON. A
    null number counts as missing; in a form, an empty one too.

    Raises:
        Refusal: as `fields` and `typed`.
    """
    given = await fields(request, limits)
    return typed(given, form, strict=is_json(request))


def typed(given: Mapping[str, Any], form: type[Form], *, strict: bool = False) -> Form:
    """The fields of a request as one of the types of requests.py; see `read`.

    Raises:
        Refusal: a field has another type, is outside its range, or is unknown to a form that forbids unknown
            fields.
    """
    schemas = properties(form)
    unknown = next((name for name in given if name not in schemas), None)
    if unknown is not None and form.__struct_config__.forbid_unknown_fields:
        name = unknown[:40].encode("ascii", "backslashreplace").decode()
        sentence = f"{name}: unknown parameter; supported: {', '.join(schemas)}"
        raise Refusal(400, sentence, param=name, code="unknown_parameter")
    missing = (None,) if strict else (None, "")
    known = {
        name: given[name]
        for name, schema in schemas.items()
        if name in given and not (given[name] in missing and _numeric(schema))
    }
    try:
        return msgspec.convert(_whole(known), form, strict=strict)
    except UnicodeEncodeError:
        raise Refusal(400, "the request contains half of a surrogate pair; send valid Unicode") from None
    except msgspec.ValidationError as error:
        found = re.search(r"`(?:\$\.)?(\w+)([^`]*)`$", str(error))
        assert found is not None, error
        value: Any = known.get(found[1])
        for place in re.findall(r"\[(\d+)\]", found[2]):
            value = value[int(place)]
        sentence = f"{found[1]}: expected {expected(schemas[found[1]])}, got {shown(value)}"
        raise Refusal(400, sentence, param=found[1]) from None


@functools.cache
def properties(form: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of each field of a request."""
    _, found = msgspec.json.schema_components([form])
    fields: dict[str, Any] = found[form.__name__]["properties"]
    return fields


def _numeric(schema: dict[str, Any]) -> bool:
    return any(one.get("type") in ("integer", "number") for one in schema.get("anyOf", [schema]))


async def fields(request: Request, limits: ServerLimits) -> dict[str, Any]:
    """The fields of a request, from its query string and its body; the body takes precedence.

    Raises:
        Refusal: the body is too large or does not match its content type, or an API key is required.
    """
    if "api_key" in request.query_params:
        admit(request, request.query_params["api_key"])
    given = await _fields(request, limits)
    admit(request, given.get("api_key"))
    return given


async def _fields(request: Request, limits: ServerLimits) -> dict[str, Any]:
    given: dict[str, Any] = {}
    _check_utf8(request.scope["query_string"], "query string")
    for name in request.query_params:
        values = request.query_params.getlist(name)
        given[name] = values if len(values) > 1 else values[0]
    if request.method in ("GET", "HEAD"):
        return given
    body = await body_of(request, limits)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORM_KINDS:
        if kind == FORM_KINDS[0]:
            _check_utf8(body, "form")
        given |= await _form(request)
    elif body:
        given |= _json(body)
    return given


def _check_utf8(encoded: bytes, what: str) -> None:
    """Refuse characters that the reader of a form would replace by U+FFFD."""
    try:
        unquote_to_bytes(encoded).decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal(400, f"the {what} is not UTF-8; encode its text as UTF-8") from None


def is_json(request: Request) -> bool:
    """Whether all fields of a request are JSON, so that they have types."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return request.method not in ("GET", "HEAD") and kind not in FORM_KINDS and not request.query_params


def _whole(value: Any) -> Any:
    """The same value with 1 in place of 1.0, which JSON does not distinguish."""
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


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
            given: dict[str, Any] = {}
            for name in form:
                values = [
                    Upload(one.filename or "", await one.read()) if isinstance(one, UploadFile) else one
                    for one in form.getlist(name)
                ]
                given[name] = values if len(values) > 1 else values[0]
            return given
    except (HTTPException, ValueError):
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


def refused(form: Callable[[Refusal], msgspec.Struct], handler: Handler) -> Handler:
    """A handler that returns refusals as responses.

    Args:
        form: makes the body of the response.
        handler: the handler; may raise Refusal or WeftError.
    """

    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except (Refusal, WeftError) as error:
            refusal = error if isinstance(error, Refusal) else Refusal(400, str(error))
            headers = {"Retry-After": str(refusal.retry_after)} if refusal.retry_after else {}
            if refusal.closes:
                headers["Connection"] = "close"
            return Json(form(refusal), refusal.status, headers)
        except Gone:
            return Response(status_code=499)  # for the log and the metrics; the client is gone

    return guarded


def plain(refusal: Refusal) -> Refused:
    """An error in LibreTranslate's format, used by all addresses except /v1."""
    return Refused(refusal.sentence)


def of_openai(refusal: Refusal) -> Failure:
    """An error in OpenAI's format, used by all addresses below /v1."""
    kind = "invalid_request_error" if refusal.status < 500 else "server_error"
    code = refusal.code
    if refusal.status == 429:
        kind, code = "rate_limit_error", code or "rate_limit_exceeded"
    return Failure(Mistake(refusal.sentence, kind, refusal.param, code))


def error_form(path: str) -> Callable[[Refusal], Refused | Failure]:
    """The format of the errors of an address, also of one that does not exist."""
    return of_openai if path == "/v1" or path.startswith("/v1/") else plain
