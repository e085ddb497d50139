"""OpenAI's completions interface for language models: /v1/models, /v1/completions.

Source: platform.openai.com/docs/api-reference/completions. Greedy and sampled requests for the same model
share batches. Not supported, and refused: suffix, best_of above n, penalties, logit_bias, chat.
Read next: continuing.py.
"""

import asyncio
import dataclasses
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from weft.serve.batcher import Batcher
from weft.serve.continuing import Ask, Continued, How, Token, go_on, size_of, spaced, writer_of
from weft.serve.forms import Json, answered, dumped, read
from weft.serve.job import Job, Stopped
from weft.serve.limits import Limits, Refusal
from weft.serve.requests import Complete
from weft.serve.responses import Choice, Completion, Failure, Logprobs, Mistake, Model, Models, Usage
from weft.serve.served import Served, find
from weft.tasks.abilities import Continuer

KIND = "language model"


class Completions:
    """The handlers.

    Args:
        runs: name to run.
        batcher: computes complete answers.
        streams: computes streamed answers.
        limits: limits of requests.
    """

    def __init__(self, runs: dict[str, Served], batcher: Batcher, streams: Batcher, limits: Limits) -> None:
        self.runs = runs
        self.batcher = batcher
        self.streams = streams
        self.limits = limits

    async def models(self, request: Request) -> Response:
        """List the language models."""
        return Json(Models([self._model(one) for one in self._fitting().values()]))

    async def model(self, request: Request) -> Response:
        """Describe one language model."""
        return Json(self._model(find(self._fitting(), request.path_params["name"], KIND)))

    async def completions(self, request: Request) -> Response:
        """Continue prompts."""
        given = await read(request, self.limits, Complete)
        run = find(self._fitting(), given.model, KIND)
        writer = writer_of(run)
        asks = self._asks(given, writer)
        about = Completion(f"cmpl-{time.time_ns():x}", int(time.time()), run.name, [])
        echo, shows = bool(given.echo), given.logprobs is not None
        if given.stream:
            events = self._stream(about, writer, asks, echo, shows)
            return await _started(events)
        key = (run, "completions")
        work, seconds = _writing(writer, echo and shows), self.limits.deadline_seconds
        job = Job(key, work, asks, seconds, size=sum(map(size_of, asks)), check=self._check(writer, asks))
        rows = await answered(request, self.batcher, job)
        choices = [_choice(n, row, echo, shows, past) for n, (row, past) in enumerate(rows)]
        prompt = sum(len(row.given) for row, _ in rows[:: given.n])
        wrote = sum(len(row.added) for row, _ in rows)
        return Json(replace(about, choices=choices, usage=Usage(prompt, wrote, prompt + wrote)))

    def _fitting(self) -> dict[str, Served]:
        return {name: run for name, run in self.runs.items() if run.continues}

    def _model(self, run: Served) -> Model:
        made = int((run.path / "model.safetensors").stat().st_mtime)
        return Model(run.name, made)

    def _asks(self, given: Complete, writer: Continuer) -> list[Ask]:
        prompts, limits, count = self.limits.texts(given.prompt, "prompt"), self.limits, given.n
        if given.best_of not in (None, count):
            raise Refusal(400, f"best_of: expected {count}, the value of n, got {given.best_of}")
        if count * len(prompts) > limits.items:
            raise Refusal(400, f"n: expected at most {limits.items} choices, got {count * len(prompts)}")
        seed = (writer.decoding.seed if given.seed is None else given.seed) % 2**62
        how = How(
            max_tokens=given.max_tokens,
            temperature=given.temperature,
            top_p=max(given.top_p, 1e-6),
            stop=_stops(given.stop, limits),
            max_lines=writer.decoding.max_lines,
            logprobs=given.logprobs or 0,
        )
        return [
            Ask(text, dataclasses.replace(how, seed=seed + number))
            for text in prompts
            for number in range(count)
        ]

    def _check(self, writer: Continuer, asks: list[Ask]) -> Callable[[], None]:
        prompts = list(dict.fromkeys(ask.text for ask in asks))
        return partial(self.limits.check_tokens, writer.tokens, prompts, "prompt")

    async def _stream(
        self, about: Completion, writer: Continuer, asks: list[Ask], echo: bool, shows: bool
    ) -> AsyncIterator[bytes]:
        events: asyncio.Queue[Any] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def work(items: list[Any], stopped: Stopped) -> list[Any]:
            sent = [(0, 0)] * len(items)
            for rows in go_on(writer, items, stopped):
                for number, row in enumerate(rows):
                    text, tokens = sent[number]
                    if row.sure > text or len(row.tokens) > tokens or row.reason:
                        part = row.text[text : row.sure], row.tokens[tokens:], row.reason
                        loop.call_soon_threadsafe(events.put_nowait, (number, *part))
                        sent[number] = max(text, row.sure), len(row.tokens)
            return [None] * len(items)

        seconds, size = self.limits.deadline_seconds, sum(map(size_of, asks))
        job = Job(object(), work, asks, seconds, size=size, check=self._check(writer, asks))
        self.streams.put(job)
        job.answer.add_done_callback(lambda done: events.put_nowait(done.exception()))
        ended = [False] * len(asks)
        try:
            if echo:
                for number, ask in enumerate(asks):
                    yield _event(replace(about, choices=[Choice(number, ask.text, None, None)]))
            while isinstance(event := await events.get(), tuple):
                number, text, tokens, reason = event
                if not ended[number]:
                    ended[number] = bool(reason)
                    shown = _logprobs(tokens, 0) if shows else None
                    yield _event(replace(about, choices=[Choice(number, text, shown, reason or None)]))
            if event is not None:
                yield _event(
                    error_form(
                        event
                        if isinstance(event, Refusal)
                        else Refusal(500, "the model failed on this input; see the log of the server")
                    )
                )
            yield b"data: [DONE]\n\n"
        finally:
            job.gone.set()


async def _started(events: AsyncIterator[bytes]) -> Response:
    """Start a stream only after its first event, so that a refusal still gets its own status."""
    first = await anext(events)

    async def whole_stream() -> AsyncIterator[bytes]:
        try:
            yield first
            async for event in events:
                yield event
        finally:
            await events.aclose()  # type: ignore[attr-defined]

    return StreamingResponse(
        whole_stream(), headers={"Cache-Control": "no-store"}, media_type="text/event-stream"
    )


def _writing(writer: Continuer, scored: bool) -> Any:
    def work(asks: list[Ask], stopped: Stopped) -> list[tuple[Continued, list[Token]]]:
        (rows,) = deque(go_on(writer, asks, stopped), maxlen=1)
        return [(row, _past(writer, row.ask.text) if scored else []) for row in rows]

    return work


def _past(writer: Continuer, text: str) -> list[Token]:
    """The tokens of the prompt with their log-probabilities."""
    pieces, logps = writer.score(text)
    return [Token(spaced(piece), logp, {}) for piece, logp in zip(pieces[:-1], logps[:-1], strict=True)]


def _choice(number: int, row: Continued, echo: bool, shows: bool, past: list[Token]) -> Choice:
    text = (row.ask.text if echo else "") + row.text
    shown = _logprobs([*past, *row.tokens], 0) if shows else None
    return Choice(number, text, shown, row.reason)


def _logprobs(tokens: list[Token], start: int) -> Logprobs:
    offsets = []
    for token in tokens:
        offsets.append(start)
        start += len(token.piece)
    return Logprobs(
        tokens=[token.piece for token in tokens],
        token_logprobs=[token.logp for token in tokens],
        top_logprobs=[token.top or {token.piece: token.logp} for token in tokens],
        text_offset=offsets,
    )


def _stops(value: str | list[str] | None, limits: Limits) -> tuple[str, ...]:
    if value is None:
        return ()
    stops = limits.texts(value, "stop")
    if len(stops) > 4 or not all(stops):
        raise Refusal(400, "stop: expected at most 4 texts, none of them empty")
    return tuple(stops)


def _event(content: Any) -> bytes:
    return b"data: " + dumped(content) + b"\n\n"


def error_form(refusal: Refusal) -> Failure:
    """An error in OpenAI's format."""
    kind = "invalid_request_error" if refusal.status < 429 else "server_error"
    return Failure(Mistake(refusal.sentence, kind))
