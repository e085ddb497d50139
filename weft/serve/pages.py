"""The web page and its data: runs, training curves, streamed answers, likely words in place of another.

Read next: watching.py; ../search/words.py; page/.
"""

import asyncio
import importlib.resources
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import exp
from typing import Annotated, Any

import torch
from fastapi import Depends, Query, Request, Response
from fastapi.responses import HTMLResponse

from weft.search.words import NextWord, WordEdges, next_words
from weft.serve import schemas
from weft.serve.batcher import SIZES, BatchJob, Emit, Stopped
from weft.serve.completions import BANNED, CHARACTERS, writer_of
from weft.serve.forms import Json, answered, client_of, fields_of, streamed
from weft.serve.limits import BEAM, MAX_TOKENS, Refusal, check_most
from weft.serve.predicting import inputs_of, inside, predicting
from weft.serve.served import Backend, ServedRun, find_run
from weft.serve.watching import cells_of, edits_of, reading, several, watch, without
from weft.tasks.seq2seq.glossary import Glossary
from weft.text.vocabulary import EOS, SOS, Vocabulary

FILES = {"index.html": "text/html", "training.html": "text/html", "page.css": "text/css"}
SCRIPTS = "common.js page.js key.js draw.js translators.js edits.js curves.js training.js"
SAME = {"training.html": "index.html"}
"""Addresses of one document, which shows one of its two parts."""

FILES |= dict.fromkeys(SCRIPTS.split(), "text/javascript")
SAFE = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; media-src data:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
}
CLOSED = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; media-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
"""For the page of `weft inspect`, one file with its own scripts: it may load and send nothing."""


class Pages:
    """The handlers."""

    def __init__(self, backend: Backend) -> None:
        self.runs, self.batcher, self.streams, self.limits = backend
        folder = importlib.resources.files("weft.serve") / "page"
        self._files = {name: (folder / SAME.get(name, name)).read_bytes() for name in FILES}

    def file(self, name: str) -> Callable[[], Response]:
        """The handler of a file of the page: HTML, style or script."""
        return lambda: Response(self._files[name], media_type=FILES[name], headers=SAFE)

    async def listed(self) -> Response:
        """List the runs with their settings and examples."""
        return Json(await asyncio.to_thread(lambda: [self._about(run) for run in self.runs.values()]))

    async def curves(self, given: Annotated[schemas.Chosen, Query()]) -> Response:
        """The training curves of a run so far."""
        run = find_run(self.runs, given.run)
        return Json(schemas.Curves(run=run.name, curves=await asyncio.to_thread(run.curves)))

    async def predict(self, request: Request, given: schemas.Predict) -> Response:
        """Answer one input or a list: classes, tags, forecasts, summaries, captions and others."""
        runs = self.runs if given.run else {name: run for name, run in self.runs.items() if run.predicts}
        run = _answering(runs, given.run, "run that answers /predict")
        items = inputs_of(run, given.inputs, self.limits)
        edits = edits_of(run, given.drop)
        work = predicting(run, self.limits, edits)
        check = self._tokens(run, [one for one in items if isinstance(one, str)], "inputs")
        job = BatchJob((run, "predict", edits), work, items, self.limits.deadline_seconds, check=check)
        outputs = await answered(request, self.batcher, job)
        return Json(schemas.Predicted(run=run.name, task=run.kind, outputs=outputs))

    async def watch(self, request: Request, given: schemas.Watch) -> Response:
        """Stream an answer as server-sent events for the page."""
        run = _answering(self.runs, given.run)
        checked = await asyncio.to_thread(self._checked, run, given)

        def work(items: list[Any], emit: Emit, stopped: Stopped) -> None:
            watch(run, items[0], emit, stopped)

        size = len(checked["text"]) + (CHARACTERS * given.max_tokens if run.continues else 0)
        texts = checked["sentences"].sentences if checked["sentences"] else [checked["text"]]
        check, seconds = self._tokens(run, texts, "text", given.prefix), self.limits.deadline_seconds
        client = client_of(request.scope)
        events = self.streams.stream(work, [checked], seconds, size=size, check=check, client=client)
        return streamed(events, lambda refusal: {"event": "error", "error": refusal.sentence})

    async def words(self, request: Request, given: schemas.Watch) -> Response:
        """The likeliest whole words after the prefix of an answer, for the page."""
        run = _answering(self.runs, given.run)
        if not (run.rewriter or run.continues):
            raise Refusal(400, f"{run.name}: expected a run that writes words, got the task {run.kind}")
        checked = await asyncio.to_thread(self._checked, run, given)

        def work(items: list[Any], stopped: Stopped) -> list[Any]:
            return [alternatives(run, items[0], stopped)]

        check = self._tokens(run, [checked["text"]], "text", given.prefix)
        seconds = self.limits.deadline_seconds
        job = BatchJob(object(), work, [checked], seconds, check=check)
        return Json(
            schemas.ProbableWords(run=run.name, words=(await answered(request, self.streams, job))[0])
        )

    async def inside(
        self, request: Request, given: Annotated[schemas.InspectFile, Depends(fields_of(schemas.InspectFile))]
    ) -> Response:
        """The page of `weft inspect` for a run and an input."""
        run = _answering(self.runs, given.run)
        work, seconds = inside(run, given, self.limits), self.limits.deadline_seconds
        job = BatchJob(object(), work, [None], seconds, size=SIZES[-1] + 1)  # seconds for any text
        return HTMLResponse((await answered(request, self.streams, job))[0], headers=CLOSED)

    def _about(self, run: ServedRun) -> schemas.Run:
        if not run.ready:
            return schemas.Run(name=run.name, task=run.kind, ready=False, targets=[])
        found = schemas.Run(
            name=run.name,
            task=run.kind,
            ready=True,
            targets=sorted({target for _, target in run.directions()}),
            directions=[list(pair) for pair in run.directions()],
            about=run.opened.task.about(),
            beam=getattr(getattr(run.opened.task, "decoding", None), "beam", 1),
            cells=cells_of(run),
            examples=run.examples(),
            parameters=sum(one.numel() for one in run.opened.model.parameters()),
        )
        if run.version:
            found["version"] = schemas.Loaded(
                update=run.version.update, digest=run.version.digest, loaded=run.version.loaded
            )
        return found

    def _tokens(self, run: ServedRun, texts: list[str], name: str, prefix: str = "") -> Callable[[], None]:
        """The check of the number of tokens, for runs that write a text."""
        if run.continues:
            return partial(self.limits.check_tokens, writer_of(run).reading.tokens, [texts[0] + prefix], name)
        if not run.rewriter:
            return lambda: None
        return partial(self.limits.check_tokens, run.rewriter.source.encode, texts, name)

    def _checked(self, run: ServedRun, given: schemas.Watch) -> dict[str, Any]:
        text = self.limits.text(given.text, "text")
        if not text.strip() and not run.continues:
            raise Refusal(400, "text: expected some words, got an empty text")
        targets = sorted({target for _, target in run.directions()})
        target = given.target or (targets[0] if targets else "")
        if targets and target not in targets:
            raise Refusal(404, f"target: expected {' or '.join(targets)}, got {target[:40]!r}")
        decoding = getattr(run.opened.task, "decoding", None)
        prefix, edits = self.limits.text(given.prefix, "prefix"), edits_of(run, given.drop, given.looks)
        sentences = several(run, text, target, prefix, edits)
        if sentences:
            self.limits.check_sentences(sentences.sentences, "text")
        return {
            "text": text,
            "sentences": sentences,
            "target": target,
            "prefix": prefix,
            "beam": given.beam or min(getattr(decoding, "beam", 1), BEAM),
            "max_tokens": given.max_tokens,
            "temperature": given.temperature,
            "seed": given.seed,
            "edits": edits,
            "terms": self._terms(given.terms or []),
        }

    def _terms(self, given: list[list[str]]) -> Glossary:
        sides = [[self.limits.text(one, "terms").strip() for one in pair] for pair in given]
        return Glossary([(source, target) for source, target in sides if source and target])


def _answering(runs: Mapping[str, ServedRun], name: str | None, what: str = "run") -> ServedRun:
    """The run with a name, which must have a model."""
    run = find_run(runs, name, what)
    if not run.ready:
        raise Refusal(409, f"{run.name}: no model yet; it is still in training")
    return run


WORDS = 8  # maximum number of words


def alternatives(run: ServedRun, given: dict[str, Any], stopped: Stopped) -> list[schemas.ProbableWord]:
    """The likeliest next words of an answer after its prefix, best first."""
    found = _continued(run, given) if run.continues else _translated(run, given, stopped)
    return [
        schemas.ProbableWord(text=text, prob=round(exp(one.logp), 4)) for text, one in found if text.strip()
    ]


@torch.inference_mode()
def _translated(run: ServedRun, given: dict[str, Any], stopped: Stopped) -> list[tuple[str, NextWord]]:
    assert run.rewriter is not None
    plain = replace(run.rewriter.decoding, require=(), prefix="")
    found, _, source = reading(run, plain, given, stopped)
    target = found.target
    before = target.encode(given["prefix"]) or target.begin()
    check_most(len(before), MAX_TOKENS, "tokens", "prefix")
    tokens = torch.tensor([source], device=found.device)
    state = found.model.start(tokens, torch.ones_like(tokens, dtype=torch.bool))
    *past, last = torch.tensor([SOS, *before], device=found.device).split(1)
    for token in past:
        found.model.pause()
        _, state = found.model.step(token, state)
    inside = len(before) == len(target.begin())
    words = next_words(
        found.model.step,
        state,
        last,
        _edges(target),
        eos=EOS,
        count=WORDS,
        banned=found.banned,
        inside=inside,
    )
    return [(target.decode(one.tokens), one) for one in words]


@torch.inference_mode()
def _continued(run: ServedRun, given: dict[str, Any]) -> list[tuple[str, NextWord]]:
    writer = writer_of(run, without(run, given["edits"]))
    text = given["text"] + given["prefix"]
    row = writer.reading.row(text)
    state, last = writer.reader.start([row])
    inside = not text or text[-1].isspace()
    words = next_words(
        writer.reader.step,
        state,
        last,
        _edges(writer.vocabulary),
        eos=EOS,
        count=WORDS,
        banned=BANNED,
        inside=inside,
    )
    return [(writer.added(text, row, one.tokens), one) for one in words]


def _edges(vocabulary: Vocabulary) -> WordEdges:
    begins, ends = (torch.tensor(edge) for edge in vocabulary.edges())
    return WordEdges(begins, ends)
