"""Read requests (JSON, form, multipart, query string) as typed objects, and write answers and refusals.

FastAPI reads JSON itself. LibreTranslate's routes take the same fields in any of the four forms: `fields_of`.
Read next: schemas.py, the types; translation.py and completions.py, which use them.
"""

import asyncio
import functools
import ipaddress
import json
import time
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing, suppress
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.datastructures import Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.errors import WeftError
from weft.serve.batcher import Batcher, BatchJob
from weft.serve.limits import Refusal, ServerLimits, refusal_of_disk
from weft.serve.schemas import Failure, Fields, Refused
from weft.store import jsonfile
from weft.wording import kind_of

Form = TypeVar("Form", bound=Fields)
Found = TypeVar("Found")
FORM_KINDS = ("application/x-www-form-urlencoded", "multipart/form-data")
ADMIT = "weft.admit"
"""Name in the scope of a function that checks a request's `api_key`; guard.py sets it."""

LINGER = 16
"""A body that is too large is read up to this multiple of the limit: most clients read the answer only after
they have sent everything."""

FREE_BYTES = 16 * 1024
"""Bytes of each body that do not count for the limit of all: large requests never delay short ones. Those of
a document count, as opening it costs more than its bytes."""

KEYLESS_BYTES = 64 * 1024  # of a body whose key is in it
MOST_FIELDS = 200

DEPTH = 16  # of lists and objects inside each other in JSON
BODIES_SECONDS = 5  # when a client may try again after it met that limit
KEY = "an API key is required to send more than {:,} bytes; send it in the header Authorization: Bearer KEY"
NO_JSON = "the body is not valid JSON in UTF-8; send an object with the request's fields"
DEEP = f"the JSON of the body is nested deeper than {DEPTH} lists and objects; send a plainer one"
OTHER_JSON = "expected a JSON object with the request's fields, got other JSON"


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
        return typed(await fields(request), form, strict=not is_form(request))

    return read


def typed(given: Mapping[str, Any], form: type[Form], *, strict: bool = False) -> Form:
    """The fields of a request as one of the types of schemas.py."""
    try:
        return form.model_validate(given, strict=strict, context={"form": not strict})
    except ValidationError as error:
        raise refusal_of(error.errors(include_url=False), given, form) from None


async def fields(request: Request) -> dict[str, Any]:
    """The fields of a request, from its query string and its body; the body takes precedence."""
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
    given = _grouped(_pairs(request.scope["query_string"], "query string"))
    if request.method in ("GET", "HEAD"):
        return given
    kind = _kind(request)
    if kind == FORM_KINDS[1]:
        return given | await _form(request)
    body = await request.body()
    if kind == FORM_KINDS[0]:
        return given | _grouped(_pairs(body, "form"))
    if not body:
        return given
    found = json_of(body)
    if not isinstance(found, dict):
        raise Refusal(400, OTHER_JSON)
    return given | found


def _grouped(items: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A value for each name, or a list of them for a name that comes more than once."""
    found: dict[str, list[Any]] = {}
    for name, value in items:
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def _pairs(encoded: bytes, what: str) -> list[tuple[str, str]]:
    """The names and values of a form or a query string; nothing in it is replaced by U+FFFD."""
    try:
        text = encoded.decode()
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except UnicodeDecodeError:
        raise Refusal(400, f"the {what} is not UTF-8; encode its text as UTF-8") from None
    except ValueError:
        raise Refusal(400, f"the {what} has more than {MOST_FIELDS} fields; send fewer") from None


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_form(request: Request) -> bool:
    """Whether a request comes as a form or a query string, whose fields are all text."""
    return request.method in ("GET", "HEAD") or _kind(request) in FORM_KINDS or bool(request.query_params)


def json_of(body: bytes) -> Any:
    """The JSON of a body."""
    try:
        found = jsonfile.parse(body.decode("utf-8-sig"))
    except ValueError:
        raise Refusal(400, NO_JSON) from None
    layer = [found]
    for _ in range(DEPTH + 1):
        layer = [one for each in layer for one in _inside(each)]
    if layer:
        raise Refusal(400, DEEP)
    return found


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


class JsonRoute(APIRoute):
    """A route whose JSON is read by `json_of`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, with another reader."""
        handler = super().get_route_handler()

        async def read(request: Request) -> Response:
            return await handler(_JsonRequest(request.scope, request.receive))

        return read


class _JsonRequest(Request):
    async def json(self) -> Any:
        return json_of(await self.body())


async def _form(request: Request) -> dict[str, Any]:
    try:
        async with request.form(max_files=1, max_fields=MOST_FIELDS) as form:
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
    """The answers of a job of this client. If it disconnects, its place in the queue becomes free."""
    job.client = client_of(request.scope)
    return await while_there(request, batcher.ask(job))


async def while_there(request: Request, work: Coroutine[Any, Any, Found]) -> Found:
    """The result of some work, which is cancelled if the client disconnects."""
    asked = asyncio.ensure_future(work)
    left = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({asked, left}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            raise ClientDisconnect
        return asked.result()
    finally:
        left.cancel()
        asked.cancel()


def streamed(
    events: AsyncGenerator[dict[str, Any], None], failed: Callable[[Refusal], Any], last: bytes = b""
) -> StreamingResponse:
    """Server-sent events as a response."""

    async def sent() -> AsyncIterator[bytes]:
        async with aclosing(events):
            try:
                async for event in events:
                    yield b"data: " + dumped(event) + b"\n\n"
            except Refusal as refusal:
                yield b"data: " + dumped(failed(refusal)) + b"\n\n"
        if last:
            yield last

    return StreamingResponse(sent(), media_type="text/event-stream")


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def refusal_of(errors: Sequence[Mapping[str, Any]], given: Any, form: type[Fields] | None = None) -> Refusal:
    """The first of a request's errors that pydantic found, as a sentence."""
    if not isinstance(given, Mapping) or form is None:
        return Refusal(400, OTHER_JSON)
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
    sentence = f"{name}: expected {_allowed(form, name)}, got {_shown(value)}"
    return Refusal(400, sentence, param=name)


@functools.cache
def _allowed(form: type[Fields], name: str) -> str:
    """The allowed values of a field, as text for people."""
    return form.model_fields[name].title or _expected(form.model_json_schema()["properties"][name])


def _expected(schema: dict[str, Any]) -> str:
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
    errors = [one for one in errors if one["loc"] or one["type"].startswith("surrogate")]
    given = error.body if errors and error.body is not None else {}
    if not errors or isinstance(given, bytes):
        return refusing(request, refusal_of([], None))
    return refusing(request, refusal_of(errors, given or dict(request.query_params), _form_of(request)))


def _form_of(request: Request) -> type[Fields] | None:
    """The type of the body, or of the query string, of the route of a request."""
    hints = request.scope["endpoint"].__annotations__.values()
    kinds = [getattr(one, "__origin__", one) for one in hints]
    return next((one for one in kinds if isinstance(one, type) and issubclass(one, Fields)), None)


async def refused(request: Request, error: Exception) -> Response:
    """The answer to a request that a handler refuses."""
    refusal = error if isinstance(error, Refusal) else Refusal(400, str(error))
    return refusing(request, refusal)


async def unwritten(request: Request, error: Exception) -> Response:
    """The answer where a file cannot be written."""
    refusal = refusal_of_disk(error)
    if refusal is None:
        raise error
    return refusing(request, refusal)


async def gone(request: Request, error: Exception) -> Response:
    """For the log and the metrics, as the client is gone."""
    return Response(status_code=499)


def refusing(request: Request, refusal: Refusal) -> Json:
    """A refusal as a response: in OpenAI's form below /v1, in LibreTranslate's elsewhere."""
    headers = {"Retry-After": str(refusal.retry_after)} if refusal.retry_after else {}
    if refusal.closes:
        headers["Connection"] = "close"
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    below = f"{request.url.path}/".startswith("/v1/")
    content = of_openai(refusal) if below else Refused(error=refusal.sentence)
    return Json(content, refusal.status, headers)


def of_openai(refusal: Refusal) -> Failure:
    """An error in OpenAI's form."""
    kind = "invalid_request_error" if refusal.status < 500 else "server_error"
    code = refusal.code
    if refusal.status == 429:
        kind, code = "rate_limit_error", code or "rate_limit_exceeded"
    return {"error": {"message": refusal.sentence, "type": kind, "param": refusal.param, "code": code}}


def client_of(scope: Scope) -> str:
    """The sender of a request: the name of its key, or its address, or its network of IPv6 addresses."""
    if "weft.key" in scope:
        return str(scope["weft.key"])
    host = scope["client"][0] if scope.get("client") else ""
    with suppress(ValueError):
        return str(ipaddress.IPv6Network((host, 64), strict=False))
    return str(host)


class OpenBodies:
    """Counts the bytes of the bodies of requests in progress, in memory and in temporary files."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self.bytes: Counter[str] = Counter()

    def take(self, client: str, count: int) -> None:
        """Add to the bytes of a client."""
        most, each = self.limits.bodies_bytes, self.limits.client_bytes
        if self.bytes[client] + count > each:
            sentence = f"your requests in progress have more than {each:,} bytes; wait for their answers"
            raise Refusal(429, sentence, retry_after=BODIES_SECONDS)
        if self.bytes.total() + count > most:
            sentence = f"all requests in progress have more than {most:,} bytes; try again later"
            raise Refusal(503, sentence, retry_after=BODIES_SECONDS)
        self.bytes[client] += count

    def give(self, client: str, count: int) -> None:
        """Take bytes of a client away."""
        self.bytes[client] -= count
        if not self.bytes[client]:
            del self.bytes[client]


class BodyLimits:
    """Refuses bodies that are too large, too many, or arrive too slowly, while they are read.

    A form with a document may be larger than other bodies; bodies are short where their key is inside.
    """

    def __init__(self, app: ASGIApp, limits: ServerLimits, documents: str, *, keyed: bool) -> None:
        self.app = app
        self.limits = limits
        self.documents = documents
        self.keyed = keyed
        self.open = OpenBodies(limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        kind = headers.get("content-type", "").lower()
        document = scope["path"] == self.documents and kind.startswith("multipart/form-data")
        until = time.monotonic() + self.limits.body_seconds
        declared = headers.get("content-length", "0")
        comes = int(declared[:18]) if declared.isdecimal() else 0
        waits = headers.get("expect", "").lower() == "100-continue"  # for our reply before it sends
        received, whole = 0, False
        most = self.limits.document_body if document else self.limits.body_bytes
        client, held = client_of(scope), 0
        free = 0 if document else FREE_BYTES

        def hold() -> None:
            nonlocal held
            if self.keyed and "weft.key" not in scope and comes > KEYLESS_BYTES:
                raise Refusal(401, KEY.format(KEYLESS_BYTES))
            if comes > most:
                raise Refusal(413, f"the body is larger than {most:,} bytes; send less at once")
            more = comes - free - held
            if more > 0:
                self.open.take(client, more)
                held += more

        async def part() -> Message:
            nonlocal received, whole, comes
            message = await asyncio.wait_for(receive(), max(0.0, until - time.monotonic()))
            received += len(message.get("body", b""))
            comes = max(comes, received)
            whole = message["type"] == "http.disconnect" or not message.get("more_body", False)
            return message

        async def limited() -> Message:
            if whole:
                return await receive()
            try:
                hold()
                message = await part()
                hold()
                return message
            except TimeoutError:
                seconds = self.limits.body_seconds
                late = f"the body did not arrive within {seconds:g} seconds; send it faster, or send less"
                raise Refusal(408, late, closes=True) from None
            except Refusal as refusal:
                with suppress(TimeoutError):
                    while not (whole or waits or refusal.status == 401) and comes <= LINGER * most:
                        await part()
                refusal.closes = not whole
                raise

        try:
            await self.app(scope, limited, send)
        finally:
            self.open.give(client, held)


HANDLERS: dict[Any, Any] = {
    RequestValidationError: invalid,
    Refusal: refused,
    WeftError: refused,
    ClientDisconnect: gone,
    OSError: unwritten,
}
