"""All routes, and the health of the server.

Read next: translation.py, completions.py, pages.py; guard.py and counts.py, around them; server.py starts it.
"""

import traceback
from pathlib import Path

from msgspec import UNSET
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from weft.serve.batcher import Batcher
from weft.serve.completions import Completions
from weft.serve.counts import AccessLog, Counts, RequestCounter
from weft.serve.documents import Documents
from weft.serve.forms import Handler, Json, error_form, refused
from weft.serve.guard import Access, sign_in
from weft.serve.limits import BEAM, Refusal, ServerLimits
from weft.serve.openapi import description
from weft.serve.pages import FILES, Pages
from weft.serve.responses import Health
from weft.serve.served import ServedRun
from weft.serve.shelf import Shelf
from weft.serve.suggestions import Suggestions
from weft.serve.translation import TranslationHandlers


class Application:
    """The application and the threads behind it.

    Args:
        runs: name to run.
        limits: limits of requests.
        access: who may use it.
        log: where each request is noted; None for nowhere.
        suggestions: the file that keeps the translations that users suggest; None refuses them.
    """

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
        self.counts = Counts(self.batcher, self.streams, limits.deadline_seconds)
        kept, keyed = Suggestions(limits, suggestions), self.access.keys is not None
        self.translation = translation = TranslationHandlers(
            runs, self.batcher, limits, keyed=keyed, suggests=suggestions is not None
        )
        documents = Documents(translation, limits, Shelf())
        completions = Completions(runs, self.batcher, self.streams, limits)
        pages = Pages(runs, self.batcher, self.streams, limits)
        both = ["GET", "POST"]
        routes = [
            _route("/", pages.file),
            *(_route(f"/{name}", _file(pages, name)) for name in FILES),
            _route("/api/key", self.key, ["POST"]),
            _route("/api/runs", pages.listed),
            _route("/api/curves", pages.curves),
            _route("/api/watch", pages.watch, ["POST"]),
            _route("/inspect", pages.inside, both),
            _route("/predict", pages.predict, ["POST"]),
            _route("/translate", translation.translate, both),
            _route("/translate_file", documents.translate_file, ["POST"]),
            _route("/download_file/{name}", documents.download_file),
            _route("/suggest", kept.suggest, ["POST"]),
            _route("/detect", translation.detect, both),
            _route("/languages", translation.languages),
            _route("/frontend/settings", translation.settings),
            _route("/health", translation.health),
            _route("/health/live", translation.health),
            _route("/health/ready", self.ready),
            _route("/metrics", self.metrics),
            _route("/openapi.json", self.openapi),
            _route("/spec", self.openapi),
            _route("/v1/models", completions.models),
            _route("/v1/models/{name}", completions.model),
            _route("/v1/completions", completions.completions, ["POST"]),
        ]
        counting = Middleware(RequestCounter, routes=routes, counts=self.counts, log=log)
        self.app = Starlette(
            routes=routes,
            exception_handlers={HTTPException: _unknown, Exception: _failed},
            middleware=[counting, *self.access.layers()],
        )

    async def ready(self, request: Request) -> Response:
        """Whether the server accepts requests: a run has a model, the queue has room, threads are alive."""
        waits = self.batcher.waiting
        trouble = self.batcher.trouble or self.streams.trouble
        ready = not trouble and waits < self.limits.queue and any(run.ready for run in self.runs.values())
        about = Health("ready" if ready else "not ready", waits, trouble or UNSET)
        return Json(about, 200 if ready else 503, {} if ready else {"Retry-After": "1"})

    async def metrics(self, request: Request) -> Response:
        """Counts and times in Prometheus's format, without client addresses or texts."""
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self.counts.scraped), headers={"Content-Type": kind})

    async def key(self, request: Request) -> Response:
        """Keep the API key of the page in a cookie."""
        return await sign_in(request, self.access, self.limits)

    async def openapi(self, request: Request) -> Response:
        """The OpenAPI description."""
        return Json(description(self.runs, self.limits, keyed=self.access.keys is not None))

    def drain(self) -> None:
        """Answer the waiting requests and accept no more."""
        self.batcher.drain()
        self.streams.drain()


def _route(path: str, handler: Handler, methods: list[str] | None = None) -> Route:
    return Route(path, refused(error_form(path), handler), methods=methods)


def _file(pages: Pages, name: str) -> Handler:
    async def handler(request: Request) -> Response:
        request.path_params["name"] = name
        return await pages.file(request)

    return handler


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentences = {404: "unknown address; GET /openapi.json lists all addresses"}
    sentences[405] = "this address does not support the method; GET /openapi.json lists the supported ones"
    code = "unknown_url" if error.status_code == 404 else None
    refusal = Refusal(error.status_code, sentences.get(error.status_code, error.detail), code=code)
    return Json(error_form(request.url.path)(refusal), error.status_code, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    traceback.print_exception(error)
    refusal = Refusal(500, "internal error; see the log of the server")
    return Json(error_form(request.url.path)(refusal), 500)
