"""OpenAI's completions interface for language models: /v1/models, /v1/completions.

Source: platform.openai.com/docs/api-reference/completions. Greedy and sampled requests for the same model
share batches. Not supported, and refused: suffix, best_of above n, penalties, logit_bias, chat, and unknown
parameters. Read next: continuing.py.
"""

import asyncio
import dataclasses
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from weft.errors import DataError
from weft.serve.batcher import Batcher
from weft.serve.continuing import Ask, ContinuationSoFar, How, Token, go_on, size_of, writer_of
from weft.serve.forms import Json, answered, dumped, of_openai
from weft.serve.job import BatchJob, Stopped, Work
from weft.serve.limits import Refusal, ServerLimits
from weft.serve.schemas import Choice, Complete, Completion, Logprobs, Model, Models, Usage
from weft.serve.served import ServedRun, find_run
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

    def __init__(
        self, runs: dict[str, ServedRun], batcher: Batcher, streams: Batcher, limits: ServerLimits
    ) -> None:
        self.runs = runs
        self.batcher = batcher
        self.streams = streams
        self.limits = limits

    async def models(self) -> Response:
        """List the language models."""
        return Json(Models(object="list", data=[self._model(one) for one in self._fitting().values()]))

    async def model(self, name: str) -> Response:
        """Describe one language model."""
        return Json(self._model(find_run(self._fitting(), name, KIND)))

    async def completions(self, request: Request, given: Complete) -> Response:
        """Continue prompts."""
        run = find_run(self._fitting(), given.model, KIND)
        writer = writer_of(run)
        asks = self._asks(given, writer)
        about = Completion(
            id=f"cmpl-{time.time_ns():x}",
            object="text_completion",
            created=int(time.time()),
            model=run.name,
            choices=[],
        )
        if given.stream_options is not None and not given.stream:
            raise Refusal(400, "stream_options: needs stream: true", param="stream_options")
        if given.stream:
            return await _started(self._stream(about, writer, asks, given))
        key, size = (run, "completions"), sum(map(size_of, asks))
        seconds, check = self.limits.deadline_seconds, self._check(writer, asks)
        job = BatchJob(key, _writing(writer), asks, seconds, size=size, check=check)
        rows = await answered(request, self.batcher, job)
        echo, shows = bool(given.echo), given.logprobs is not None
        choices = [
            _choice(n, row.prompt * echo + row.text, [*row.past, *row.tokens], row, echo, shows)
            for n, row in enumerate(rows)
        ]
        return Json({**about, "choices": choices, "usage": _usage(rows, given.n)})

    def _fitting(self) -> dict[str, ServedRun]:
        return {name: run for name, run in self.runs.items() if run.continues}

    def _model(self, run: ServedRun) -> Model:
        return Model(id=run.name, object="model", created=run.made, owned_by="weft")

    def _asks(self, given: Complete, writer: Continuer) -> list[Ask]:
        prompts, limits, count = self.limits.prompts(given.prompt, "prompt"), self.limits, given.n
        if given.best_of not in (None, count):
            sentence = f"best_of: expected {count}, the value of n, got {given.best_of}; none is left out"
            raise Refusal(400, sentence, param="best_of")
        if count * len(prompts) > limits.items:
            sentence = f"n: expected at most {limits.items} choices, got {count * len(prompts)}"
            raise Refusal(400, sentence, param="n")
        for prompt in prompts:
            if not isinstance(prompt, str):
                _check_numbers(writer, prompt)
        seed = (writer.decoding.seed if given.seed is None else given.seed) % 2**62
        how = How(
            max_tokens=given.max_tokens,
            temperature=given.temperature,
            top_p=max(given.top_p, 1e-6),
            stop=_stops(given.stop, limits),
            ends=writer.ends,
            logprobs=given.logprobs or 0,
            scored=bool(given.echo) and given.logprobs is not None,
        )
        return [
            Ask(
                prompt if isinstance(prompt, str) else tuple(prompt),
                dataclasses.replace(how, seed=seed + number),
            )
            for prompt in prompts
            for number in range(count)
        ]

    def _check(self, writer: Continuer, asks: list[Ask]) -> Callable[[], None]:
        prompts = list(dict.fromkeys(ask.prompt for ask in asks))

        def read(prompt: str | Sequence[int]) -> Sequence[int]:
            return writer.reading.tokens(prompt) if isinstance(prompt, str) else prompt

        return partial(self.limits.check_tokens, read, prompts, "prompt")

    async def _stream(
        self, about: Completion, writer: Continuer, asks: list[Ask], given: Complete
    ) -> AsyncIterator[bytes]:
        echo, shows = bool(given.echo), given.logprobs is not None
        counts = given.stream_options is not None and given.stream_options.include_usage
        if counts:
            about["usage"] = None
        events: asyncio.Queue[Any] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        usage: list[Usage] = []

        def work(items: list[Any], stopped: Stopped) -> list[Any]:
            sent = [(0, 0)] * len(items)
            begun = not echo
            for rows in go_on(writer, items, stopped):
                for number, row in enumerate(rows):
                    if not begun:
                        part = _choice(number, row.prompt, row.past, None, echo, shows)
                        loop.call_soon_threadsafe(events.put_nowait, part)
                    text, tokens = sent[number]
                    if row.sure > text or len(row.tokens) > tokens or row.reason:
                        part = _choice(
                            number, row.text[text : row.sure], row.tokens[tokens:], row, echo, shows
                        )
                        loop.call_soon_threadsafe(events.put_nowait, part)
                        sent[number] = max(text, row.sure), len(row.tokens)
                begun = True
            usage.append(_usage(rows, given.n))
            return [None] * len(items)

        seconds, size = self.limits.deadline_seconds, sum(map(size_of, asks))
        job = BatchJob(object(), work, asks, seconds, size=size, check=self._check(writer, asks))
        self.streams.put(job)
        job.answer.add_done_callback(lambda done: events.put_nowait(done.exception()))
        ended = [False] * len(asks)
        try:
            while isinstance(event := await events.get(), dict):
                if not ended[event["index"]]:
                    ended[event["index"]] = event["finish_reason"] is not None
                    yield _event({**about, "choices": [event]})
            if event is not None:
                failed = Refusal(500, "the model failed on this input; see the log of the server")
                yield _event(of_openai(event if isinstance(event, Refusal) else failed))
            elif counts:
                yield _event({**about, "usage": usage[0]})
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


def _writing(writer: Continuer) -> Work:
    def work(asks: list[Ask], stopped: Stopped) -> list[ContinuationSoFar]:
        (rows,) = deque(go_on(writer, asks, stopped), maxlen=1)
        return rows

    return work


def _check_numbers(writer: Continuer, numbers: list[int]) -> None:
    """Check them before they share a batch with other requests."""
    try:
        writer.reading.numbered(numbers)
    except DataError as error:
        raise Refusal(400, f"prompt: {error}", param="prompt") from error


def _usage(rows: list[ContinuationSoFar], count: int) -> Usage:
    """The tokens of the prompts, each counted once for its `count` choices, and those written."""
    prompt = sum(len(row.given) for row in rows[::count])
    wrote = sum(len(row.added) for row in rows)
    return Usage(prompt_tokens=prompt, completion_tokens=wrote, total_tokens=prompt + wrote)


def _choice(
    number: int, text: str, tokens: list[Token], row: ContinuationSoFar | None, echo: bool, shows: bool
) -> Choice:
    """A choice, or a part of one.

    Args:
        number: its place among the choices.
        text, tokens: of this part.
        row: the continuation, whose end may have been reached; None for the prompt.
        echo: whether the text begins with the prompt.
        shows: whether to show log-probabilities.
    """
    before = 0 if echo or row is None else len(row.prompt)
    shown = Logprobs(
        tokens=[token.piece for token in tokens],
        token_logprobs=[token.logp for token in tokens],
        top_logprobs=[token.top for token in tokens],
        text_offset=[token.begin - before for token in tokens],
    )
    reason = row.reason or None if row else None
    return Choice(index=number, text=text, logprobs=shown if shows else None, finish_reason=reason)


def _stops(value: str | list[str] | None, limits: ServerLimits) -> tuple[str, ...]:
    if value is None:
        return ()
    stops = limits.texts(value, "stop")
    if len(stops) > 4 or not all(stops):
        raise Refusal(400, "stop: expected at most 4 texts, none of them empty", param="stop")
    return tuple(stops)


def _event(content: Any) -> bytes:
    return b"data: " + dumped(content) + b"\n\n"
