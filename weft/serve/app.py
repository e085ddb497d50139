"""All routes, and the health of the server.

Read next: translation.py, completions.py, pages.py; guard.py and counts.py, around them; server.py starts it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from prometheus_client.exposition import choose_encoder
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Match

from weft.serve import schemas
from weft.serve.batcher import Batcher
from weft.serve.completions import Completions
from weft.serve.counts import AccessLog, Counts, RequestCounter
from weft.serve.forms import HANDLERS, BodyLimits, Json, JsonRoute, dumped, refusing
from weft.serve.guard import Access, sign_in
from weft.serve.limits import BEAM, Refusal, ServerLimits, print_error
from weft.serve.openapi import description, may, streams
from weft.serve.pages import FILES, Pages
from weft.serve.served import Backend, ServedRun
from weft.serve.translation import Documents, Shelf, TranslationHandlers

DOCUMENTS = "/translate_file"
POST, BOTH = ("POST",), ("GET", "POST")
NAME = str.maketrans("/{}.", "____")
BINARY = {"type": "string", "format": "binary"}
SENTENCES = {
    400: "the body cannot be read; send JSON, with the header Content-Type: application/json",
    404: "unknown address; GET /openapi.json lists all addresses",
    405: "this address does not support the method; GET /openapi.json lists the supported ones",
}


class Application:
    """The application and the threads behind it."""

    def __init__(
        self,
        runs: dict[str, ServedRun],
        limits: ServerLimits,
        access: Access | None = None,
        log: AccessLog | None = None,
        suggestions: Path | None = None,
    ) -> None:
        self.runs = runs
        self.limits = limits
        self.access = access or Access()
        self.batcher = Batcher("answers", most=limits.queue, rows=limits.batch_rows)
        # A stream takes one place per text; the queue of complete answers does not limit it. It is never cut.
        self.streams = Batcher("streams", most=limits.streams * BEAM, rows=limits.items)
        self._described: tuple[list[Any] | None, bytes] = None, b""
        """The state of the runs, and their description, which takes a while to make."""
        batchers = {"answers": self.batcher, "streams": self.streams}
        self.counts = Counts(batchers, limits.deadline_seconds)
        backend = Backend(runs, self.batcher, self.streams, limits)
        self.app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, strict_content_type=False)
        self.app.router.route_class = JsonRoute
        for kind, handler in {**HANDLERS, HTTPException: _unknown, Exception: _failed}.items():
            self.app.add_exception_handler(kind, handler)
        counting = Middleware(RequestCounter, routes=self.app.routes, counts=self.counts, log=log)
        keyed = self.access.keys is not None
        bodies = Middleware(BodyLimits, limits=limits, documents=DOCUMENTS, keyed=keyed)
        self.app.user_middleware = [counting, *self.access.layers(), bodies]
        self.translation = TranslationHandlers(backend, keyed=keyed, suggestions=suggestions)
        self._translation_routes(self.translation, Documents(self.translation, Shelf()))
        self._model_routes(Completions(backend))
        self._page_routes(Pages(backend))

    def _translation_routes(self, one: TranslationHandlers, documents: Documents) -> None:
        file = {
            200: {"description": "The file.", "content": {"application/octet-stream": {"schema": BINARY}}}
        }
        self._add("/translate", one.translate, schemas.Translated, may(404, 409, 429), methods=BOTH)
        self._add(DOCUMENTS, documents.translate_file, schemas.TranslatedFile, may(404, 409, 429), POST)
        self._add("/download_file/{name}", documents.download_file, None, file | may(404))
        self._add("/suggest", one.suggest, schemas.Suggested, methods=POST)
        self._add("/detect", one.detect, list[schemas.Detected], methods=BOTH)
        self._add("/languages", one.languages, list[schemas.Language])
        self._add("/frontend/settings", one.settings, schemas.Settings)
        self._add("/health", one.health, schemas.Health)
        self._add("/health/live", one.health, schemas.Health)

    def _model_routes(self, one: Completions) -> None:
        events = {200: {"description": "The answer.", "content": streams(schemas.Completion, done=True)}}
        self._add("/v1/models", one.models, schemas.Models)
        self._add("/v1/models/{name}", one.model, schemas.Model, may(404, 409))
        self._add("/v1/completions", one.completions, schemas.Completion, events | may(404, 409, 429), POST)

    def _page_routes(self, pages: Pages) -> None:
        for name in ("", *FILES):
            self._hidden(f"/{name}", pages.file(name or "index.html"))
        for name in ("openapi.json", "spec"):
            self._hidden(f"/{name}", self.openapi)
        events = {200: {"description": "The answer.", "content": streams(schemas.Watched)}}
        counted = {"application/openmetrics-text": {"schema": {"type": "string"}}}
        shown = {200: {"description": "The counts.", "content": counted}}
        trouble = {503: {"description": "Not now; trouble says why.", "model": schemas.Health}}
        self._add("/predict", pages.predict, schemas.Predicted, may(404, 409, 429), POST)
        self._add("/api/key", self.key, None, may(409), POST, status=204)
        self._add("/api/runs", pages.listed, list[schemas.Run])
        self._add("/api/curves", pages.curves, schemas.Curves, may(404, 409))
        self._add("/api/watch", pages.watch, None, events | may(404, 409, 429), POST)
        self._add("/api/words", pages.words, schemas.ProbableWords, may(404, 409, 429), POST)
        self._add("/inspect", pages.inside, str, may(404, 409, 429), BOTH, kind=HTMLResponse)
        self._add("/health/ready", self.ready, schemas.Health, trouble)
        self._add("/metrics", self.metrics, str, shown, kind=PlainTextResponse)

    def _add(
        self,
        path: str,
        handler: Callable[..., Any],
        answer: Any,
        responses: dict[Any, dict[str, Any]] | None = None,
        methods: tuple[str, ...] = ("GET",),
        *,
        status: int = 200,
        kind: type[Response] = Json,
    ) -> None:
        """Add a route for each method, so that each has a name of its own in the description."""
        if "GET" in methods:
            self._hidden(path, handler, "HEAD")
        for method in methods:
            self.app.add_api_route(
                path,
                handler,
                methods=[method],
                summary=(handler.__doc__ or "").partition("\n")[0],
                response_model=answer,
                responses=responses,
                status_code=status,
                response_class=kind if answer is not None else Response,
                operation_id=f"{method.lower()}{path.translate(NAME)}",
            )

    def _hidden(self, path: str, handler: Callable[..., Any], *methods: str) -> None:
        """Add a route that is not described."""
        self.app.add_api_route(
            path, handler, methods=list(methods or ("GET", "HEAD")), include_in_schema=False
        )

    async def ready(self) -> Response:
        """Whether the server accepts requests: a run has a model, the queue has room, threads are alive."""
        waits = self.batcher.waiting
        trouble = self.batcher.trouble or self.streams.trouble
        ready = not trouble and waits < self.limits.queue and any(run.ready for run in self.runs.values())
        about = schemas.Health(status="ready" if ready else "not ready", waiting=waits)
        if trouble:
            about["trouble"] = trouble
        return Json(about, 200 if ready else 503, {} if ready else {"Retry-After": "1"})

    async def metrics(self, request: Request) -> Response:
        """Counts and times in Prometheus's format, without client addresses or texts."""
        self.counts.note()
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self.counts.scraped), headers={"Content-Type": kind})

    async def key(self, request: Request, given: schemas.SignIn) -> Response:
        """Keep the API key of the page in a cookie."""
        return sign_in(request, self.access, given)

    async def openapi(self) -> Response:
        """The OpenAPI description."""
        state = [(run.name, run.state) for run in self.runs.values()]
        if state != self._described[0]:
            self._described = state, dumped(self.description())
        return Response(self._described[1], media_type="application/json")

    def description(self) -> dict[str, Any]:
        """The OpenAPI description of this server."""
        return description(self.app, self.runs, self.limits, keyed=self.access.keys is not None)

    def drain(self) -> None:
        """Accept no more requests, and answer the waiting ones for some seconds."""
        self.batcher.drain()
        self.streams.drain()


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = "unknown_url" if error.status_code == 404 else None
    sentence = SENTENCES.get(error.status_code, error.detail)
    answer = refusing(request, Refusal(error.status_code, sentence, code=code))
    answer.headers.update(error.headers or {})
    if error.status_code == 405:  # every method of the address has a route of its own
        fitting = [one for one in request.app.routes if one.matches(request.scope)[0] is not Match.NONE]
        answer.headers["Allow"] = ", ".join(sorted({method for one in fitting for method in one.methods}))
    return answer


async def _failed(request: Request, error: Exception) -> Response:
    print_error(error)
    return refusing(request, Refusal(500, "internal error; see the log of the server"))
