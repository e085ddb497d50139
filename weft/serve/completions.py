"""OpenAI's completions interface for language models: /v1/models, /v1/completions.

Source: platform.openai.com/docs/api-reference/completions. Greedy and sampled requests for the same model
share batches. Not supported, and refused: suffix, best_of above n, penalties, logit_bias, chat, and unknown
parameters. Read next: continuing.py.
"""

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fastapi import Request, Response

from weft.errors import DataError
from weft.search.offered import Narrowing, offers
from weft.serve.batcher import BatchJob, Emit, Stopped, StreamWork, Work
from weft.serve.continuing import Ask, ContinuationSoFar, How, Token, go_on, size_of, writer_of
from weft.serve.forms import Json, answered, client_of, of_openai, streamed
from weft.serve.limits import Refusal, check_most
from weft.serve.schemas import Choice, Complete, Completion, Logprobs, Model, Models, Usage
from weft.serve.served import Backend, ServedRun, find_run
from weft.tasks.abilities import TextContinuation

KIND = "language model"


class Completions:
    """The handlers."""

    def __init__(self, backend: Backend) -> None:
        self.runs, self.batcher, self.streams, self.limits = backend

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
        seconds, size = self.limits.deadline_seconds, sum(map(size_of, asks))
        check = self._check(writer, asks)
        if given.stream:
            work = _streaming(writer, given, about)
            events = self.streams.stream(
                work, asks, seconds, size=size, check=check, client=client_of(request.scope)
            )
            return streamed(events, of_openai, b"data: [DONE]\n\n")
        job = BatchJob((run, "completions"), _writing(writer), asks, seconds, size=size, check=check)
        rows = await answered(request, self.batcher, job)
        choices = [
            _choice(n, row.prompt * bool(given.echo) + row.text, [*row.past, *row.tokens], row, given)
            for n, row in enumerate(rows)
        ]
        return Json({**about, "choices": choices, "usage": _usage(rows, given.n)})

    def _fitting(self) -> dict[str, ServedRun]:
        return {name: run for name, run in self.runs.items() if run.continues}

    def _model(self, run: ServedRun) -> Model:
        return Model(id=run.name, object="model", created=run.made, owned_by="weft")

    def _asks(self, given: Complete, writer: TextContinuation) -> list[Ask]:
        limits, count = self.limits, given.n
        prompt: Any = given.prompt
        one_row = isinstance(prompt, list) and isinstance(prompt[0], int)
        prompts = limits.texts([prompt] if one_row else prompt, "prompt")
        if given.best_of not in (None, count):
            sentence = f"best_of: expected {count}, the value of n, got {given.best_of}; none is left out"
            raise Refusal(400, sentence, param="best_of")
        check_most(count * len(prompts), limits.items, "choices", "n")
        try:  # numbers of tokens, before they share a batch with other requests
            for prompt in prompts:
                if not isinstance(prompt, str):
                    writer.vocabulary.numbered(prompt)
        except DataError as error:
            raise Refusal(400, f"prompt: {error}", param="prompt") from error
        seed = (writer.decoding.seed if given.seed is None else given.seed) % 2**62
        how = How(
            max_tokens=given.max_tokens,
            temperature=given.temperature,
            narrowing=Narrowing(
                **{name: getattr(given, name) for name in offers(Narrowing)}
                | {"temperature": 1.0, "top_p": max(given.top_p, 1e-6)}
            ),
            stop=() if given.stop is None else tuple(limits.texts(given.stop, "stop")),
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

    def _check(self, writer: TextContinuation, asks: list[Ask]) -> Callable[[], None]:
        prompts = list(dict.fromkeys(ask.prompt for ask in asks))

        def read(prompt: str | Sequence[int]) -> Sequence[int]:
            return writer.reading.tokens(prompt) if isinstance(prompt, str) else prompt

        return partial(self.limits.check_tokens, read, prompts, "prompt")


def _streaming(writer: TextContinuation, given: Complete, about: Completion) -> StreamWork:
    """The work of a stream: it emits the choices part by part, and the usage if asked for."""
    counts = given.stream_options is not None and given.stream_options.include_usage

    def work(asks: list[Ask], emit: Emit, stopped: Stopped) -> None:
        def part(number: int, text: str, tokens: list[Token], row: ContinuationSoFar | None) -> None:
            usage = {"usage": None} if counts else {}
            emit({**about, "choices": [_choice(number, text, tokens, row, given)], **usage})

        sent = [(0, 0)] * len(asks)
        ended = [False] * len(asks)
        begun = not given.echo
        for rows in go_on(writer, asks, stopped):
            for number, row in enumerate(rows):
                if not begun:
                    part(number, row.prompt, row.past, None)
                text, tokens = sent[number]
                if not ended[number] and (row.sure > text or len(row.tokens) > tokens or row.reason):
                    part(number, row.text[text : row.sure], row.tokens[tokens:], row)
                    sent[number] = max(text, row.sure), len(row.tokens)
                    ended[number] = bool(row.reason)
            begun = True
        if counts:
            emit({**about, "usage": _usage(rows, given.n)})

    return work


def _writing(writer: TextContinuation) -> Work:
    def work(asks: list[Ask], stopped: Stopped) -> list[ContinuationSoFar]:
        (rows,) = deque(go_on(writer, asks, stopped), maxlen=1)
        return rows

    return work


def _usage(rows: list[ContinuationSoFar], count: int) -> Usage:
    """The tokens of the prompts, each counted once for its `count` choices, and those written."""
    prompt = sum(len(row.given) for row in rows[::count])
    wrote = sum(len(row.added) for row in rows)
    return Usage(prompt_tokens=prompt, completion_tokens=wrote, total_tokens=prompt + wrote)


def _choice(
    number: int, text: str, tokens: list[Token], row: ContinuationSoFar | None, given: Complete
) -> Choice:
    """A choice, or a part of one with its own text and tokens; of the prompt without a row."""
    before = 0 if given.echo or row is None else len(row.prompt)
    shown = Logprobs(
        tokens=[token.piece for token in tokens],
        token_logprobs=[token.logp for token in tokens],
        top_logprobs=[token.top for token in tokens],
        text_offset=[token.begin - before for token in tokens],
    )
    reason = row.reason or None if row else None
    return Choice(
        index=number, text=text, logprobs=None if given.logprobs is None else shown, finish_reason=reason
    )
