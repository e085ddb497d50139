"""The page and what it asks for: runs, curves, and answers as they come. Read next: watching.py; page/."""

import asyncio
import importlib.resources
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from weft.serve.batcher import Batcher, Job, Stopped
from weft.serve.edits import cells_of, edits_of
from weft.serve.forms import Json, answered, fields
from weft.serve.inside import inside
from weft.serve.limits import Limits, Refusal, real, whole
from weft.serve.predicting import inputs_of, predicting
from weft.serve.served import Served, find
from weft.serve.watching import watch

FILES = {"index.html": "text/html", "page.css": "text/css"}
FILES |= dict.fromkeys(("page.js", "draw.js", "edits.js", "curves.js"), "text/javascript")
SAFE = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; media-src data:; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Pages:
    """The handlers.

    Args:
        runs: by name.
        batcher, streams: of whole answers, and of those that are watched.
        limits: of the server.
    """

    def __init__(self, runs: dict[str, Served], batcher: Batcher, streams: Batcher, limits: Limits) -> None:
        self.runs = runs
        self.batcher = batcher
        self.streams = streams
        self.limits = limits
        folder = importlib.resources.files("weft.serve") / "page"
        self._files = {name: (folder / name).read_bytes() for name in FILES}

    async def file(self, request: Request) -> Response:
        """The page, its style and its script."""
        name = request.path_params.get("name", "index.html")
        return Response(self._files[name], media_type=FILES[name], headers=SAFE)

    async def listed(self, request: Request) -> Response:
        """The runs, and how each is asked."""
        return Json([self._about(run) for run in self.runs.values()])

    async def curves(self, request: Request) -> Response:
        """What training wrote so far."""
        run = find(self.runs, request.query_params.get("run"))
        return Json({"run": run.name, "curves": await asyncio.to_thread(run.curves)})

    async def predict(self, request: Request) -> Response:
        """Classes, tags, forecasts, summaries, captions: whole answers for one input or a list."""
        given = await fields(request, self.limits)
        named = given.get("run")
        runs = self.runs if named else {name: run for name, run in self.runs.items() if run.predicts}
        run = find(runs, named, "run that answers /predict")
        if "inputs" not in given:
            raise Refusal(400, "inputs: expected a text, numbers, a file as base64, or a list of them")
        _answering(run)
        items = inputs_of(run, given["inputs"], self.limits)
        edits = edits_of(run, given)
        work = predicting(run, self.limits, edits)
        job = Job((run.name, "predict", edits), work, items, self.limits.deadline_seconds)
        return Json(
            {"run": run.name, "task": run.kind, "outputs": await answered(request, self.batcher, job)}
        )

    async def watch(self, request: Request) -> Response:
        """An answer as it comes: server-sent events for the page."""
        given = await fields(request, self.limits)
        run = find(self.runs, given.get("run"))
        _answering(run)
        checked = self._checked(run, given)
        events: asyncio.Queue[Any] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def emit(event: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(events.put_nowait, event)

        def work(items: Any, stopped: Stopped) -> list[Any]:
            for one in items:
                watch(run, one, emit, stopped)
            return [None] * len(items)

        job = Job(object(), work, [checked], self.limits.deadline_seconds)
        self.streams.put(job)
        job.answer.add_done_callback(lambda done: events.put_nowait(done.exception()))

        async def told() -> AsyncIterator[bytes]:
            try:
                while isinstance(event := await events.get(), dict):
                    yield b"data: " + json.dumps(event, allow_nan=False).encode("ascii") + b"\n\n"
                if event is not None:
                    why = event.sentence if isinstance(event, Refusal) else "it failed"
                    failed = json.dumps({"event": "error", "error": why})
                    yield b"data: " + failed.encode("ascii") + b"\n\n"
            finally:
                job.gone.set()

        return StreamingResponse(
            told(), headers={"Cache-Control": "no-store"}, media_type="text/event-stream"
        )

    async def inside(self, request: Request) -> Response:
        """The page of `weft inspect` for a run and what it is given: gates, gradients, heads and the like."""
        given = await fields(request, self.limits)
        run = find(self.runs, given.get("run"))
        _answering(run)
        job = Job(object(), inside(run, given, self.limits), [None], self.limits.deadline_seconds)
        return HTMLResponse((await answered(request, self.streams, job))[0])

    def _about(self, run: Served) -> dict[str, Any]:
        about: dict[str, Any] = {"name": run.name, "task": run.kind, "ready": run.ready, "targets": []}
        if run.ready:
            about["about"] = run.opened.task.about()
            about["targets"] = sorted({target for _, target in run.directions()})
            about["beam"] = getattr(getattr(run.opened.task, "decoding", None), "beam", 1)
            about["cells"] = cells_of(run)
            about["examples"] = run.examples()
            about["parameters"] = sum(one.numel() for one in run.opened.model.parameters())
        return about

    def _checked(self, run: Served, given: dict[str, Any]) -> dict[str, Any]:
        text = self.limits.text(given.get("text"), "text")
        if not text.strip() and not run.continues:
            raise Refusal(400, "text: expected some words, got an empty text")
        targets = sorted({target for _, target in run.directions()})
        target = given.get("target") or (targets[0] if targets else "")
        if targets and target not in targets:
            raise Refusal(400, f"target: this run writes {', '.join(targets)}")
        decoding = getattr(run.opened.task, "decoding", None)
        return {
            "text": text,
            "target": target,
            "prefix": self.limits.text(given.get("prefix", ""), "prefix"),
            "beam": whole(
                given, "beam", min(getattr(decoding, "beam", 1), self.limits.beam), 1, self.limits.beam
            ),
            "max_tokens": whole(given, "max_tokens", 60, 1, self.limits.max_tokens),
            "temperature": real(given, "temperature", 0.0, 0.0, 2.0),
            "seed": whole(given, "seed", 1, 0, 2**31),
            "edits": edits_of(run, given),
        }


def _answering(run: Served) -> None:
    if not run.ready:
        raise Refusal(409, f"{run.name}: has no model yet; it is in training")
