"""OpenAI's completions interface for language models: /v1/models, /v1/completions.

Source: platform.openai.com/docs/api-reference/completions. Greedy and sampled requests for the same model
share batches. Not supported, and refused: suffix, best_of above n, penalties, logit_bias, chat, and unknown
parameters. Each row has its own random generator and leaves the batch when it ends, so its text does not
depend on the other rows. The model reads texts with the same number of tokens together.
Read next: ../search/greedy.py, the same loop without output between the steps.
"""

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from fastapi import Request, Response
from torch import Tensor, nn

from weft.errors import DataError
from weft.search.candidates import best_tokens
from weft.search.filters import invert, narrow
from weft.search.offered import Narrowing, offers
from weft.serve.batcher import BatchJob, ClientLeft, Emit, Stopped, StreamWork, Work
from weft.serve.forms import Json, answered, client_of, of_openai, streamed
from weft.serve.limits import Refusal, check_most
from weft.serve.schemas import Choice, Complete, Completion, Logprobs, Model, Models, Usage
from weft.serve.served import Backend, ServedRun, find_run
from weft.tasks.abilities import ContinuesText, Expected, TextContinuation
from weft.text.vocabulary import EOS, PAD, SOS, UNK
from weft.tree import keep_sources

BANNED = (PAD, UNK, SOS)
CHARACTERS = 4  # of a token, roughly
AT_ONCE = 8  # prompts scored before other requests get a turn
HALF = "\ufffd"  # what a tokenizer writes for a character whose last bytes are still missing
LEAST = -9999.0  # reported for what is impossible, as OpenAI does: JSON has no infinity


@dataclass(frozen=True, kw_only=True)
class How:
    """Settings for the continuation of one text."""

    max_tokens: int  # new ones
    temperature: float = 1.0  # 0 takes the most probable token
    narrowing: Narrowing = field(default_factory=Narrowing)  # its temperature is not used
    seed: int = 1  # of the row's random generator
    ends: int = 1  # number of </s> after which the text ends
    stop: tuple[str, ...] = ()  # strings before which the text ends
    logprobs: int = 0  # alternatives to report per token
    scored: bool = False  # whether to report the tokens of the prompt too


class Ask(NamedTuple):
    """A prompt and the settings of its continuation."""

    prompt: str | tuple[int, ...]  # a text, or numbers of the run's tokenizer.json, read exactly as given
    how: How


class Token(NamedTuple):
    """A token of a prompt or of its continuation."""

    piece: str
    begin: int  # place in prompt and continuation
    logp: float | None  # None for the first token of a prompt
    top: dict[str, float] | None  # piece to log-probability, best first, with that of the token itself


@dataclass
class ContinuationSoFar:
    """The continuation of one prompt so far."""

    ask: Ask
    prompt: str  # as text
    given: list[int]  # its tokens, after those that are read before every text
    row: list[int]  # what the model reads
    spelling: Callable[[int], tuple[int, str]]  # of the row, ready for the next token
    end: int  # length of what it has spelled
    past: list[Token] = field(default_factory=list)  # tokens of the prompt, if asked for
    added: list[int] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)  # `added`, and the end that was written
    text: str = ""  # the generated text, up to a stop string
    sure: int = 0  # number of characters that can no longer change
    reason: str = ""  # "stop" or "length" once it has ended


def size_of(ask: Ask) -> int:
    """The characters that are read and written, roughly, for the choice of a lane."""
    tokens = ask.how.max_tokens + (0 if isinstance(ask.prompt, str) else len(ask.prompt))
    return (len(ask.prompt) if isinstance(ask.prompt, str) else 0) + CHARACTERS * tokens


def writer_of(run: ServedRun, model: nn.Module | None = None) -> TextContinuation:
    """The writer of a run's language model, or of a changed copy of it."""
    pipeline = run.opened.pipeline
    assert isinstance(pipeline, ContinuesText)
    return pipeline.writer(model or run.opened.model)


def go_on(
    writer: TextContinuation, asks: Sequence[Ask], stopped: Stopped
) -> Iterator[list[ContinuationSoFar]]:
    """Generate one token per unfinished text and yield all rows, one per request, until all have ended."""
    rows = [_begun(writer, ask) for ask in asks]
    _score(writer, [row for row in rows if row.ask.how.scored], stopped)
    groups: dict[int, list[ContinuationSoFar]] = {}
    for row in rows:
        row.reason = "" if row.ask.how.max_tokens else "length"
        if not row.reason:
            groups.setdefault(len(row.row), []).append(row)
    if not groups:
        yield rows
    for group in groups.values():
        for _ in _together(writer, group, stopped):
            yield rows


def _begun(writer: TextContinuation, ask: Ask) -> ContinuationSoFar:
    reading = writer.reading
    if isinstance(ask.prompt, str):
        row = reading.row(ask.prompt)
        given = row[len(reading.opening) :] if ask.prompt else []
    else:
        row = given = writer.vocabulary.numbered(ask.prompt)
    spelling = reading.spelling()
    read = "".join([spelling(token)[1] for token in row])
    prompt = ask.prompt if isinstance(ask.prompt, str) else read
    return ContinuationSoFar(ask, prompt, given, row, spelling, len(read))


def _score(writer: TextContinuation, rows: Sequence[ContinuationSoFar], stopped: Stopped) -> None:
    """Fill in the tokens of the prompts; equal ones are computed once."""
    most = max((row.ask.how.logprobs for row in rows), default=0)
    different = sorted({tuple(row.row) for row in rows}, key=len)
    found: dict[tuple[int, ...], Sequence[Expected]] = {}
    for at in range(0, len(different), AT_ONCE):
        if stopped():
            raise ClientLeft
        some = different[at : at + AT_ONCE]
        found |= dict(zip(some, writer.expected(some, most), strict=True))
    for row in rows:
        if isinstance(row.ask.prompt, str):
            begins = writer.reading.begins(row.prompt)
        else:
            spelling = writer.reading.spelling()
            begins = [spelling(token)[0] for token in row.given]
        known = found[tuple(row.row)]
        after = known[len(known) + 1 - len(row.given) :] if row.given else []
        for begin, token in zip(begins[:1], row.given[:1], strict=True):
            first = _token(writer, row.ask.how, begin, row.prompt, token, 0.0, [])
            row.past.append(first._replace(logp=None, top=None))
        for begin, (token, logp, best) in zip(begins[1:], after, strict=True):
            rest = row.prompt[begin : begin + 1]
            row.past.append(_token(writer, row.ask.how, begin, rest, token, logp, best))


def _token(
    writer: TextContinuation,
    how: How,
    begin: int,
    rest: str,
    number: int,
    logp: float,
    best: Sequence[tuple[int, float]],
) -> Token:
    """A token with its alternatives."""
    best = best[: how.logprobs]
    numbers = [number, *(other for other, _ in best)]
    pieces = writer.reading.shown(numbers)
    if pieces[0].startswith(" ") and rest and not rest[0].isspace():  # the beginning of a text has no space
        pieces = [piece.removeprefix(" ") for piece in pieces]
    top: dict[str, float] = {}
    for piece, (_, value) in zip(pieces[1:], best, strict=True):
        top.setdefault(piece, max(value, LEAST))  # of pieces that look the same, the likeliest
    top.setdefault(pieces[0], max(logp, LEAST))
    return Token(pieces[0], begin, max(logp, LEAST), top)


@torch.inference_mode()
def _together(writer: TextContinuation, rows: list[ContinuationSoFar], stopped: Stopped) -> Iterator[None]:
    state, token = writer.reader.start([row.row for row in rows])
    chances = [torch.Generator().manual_seed(row.ask.how.seed) for row in rows]
    while rows:
        if stopped():
            raise ClientLeft
        logp, state = writer.reader.step(token, state)
        chosen = [_choose(logp[n : n + 1], row.ask.how, chances[n]) for n, row in enumerate(rows)]
        for place, (row, number) in enumerate(zip(rows, chosen, strict=True)):
            _add(writer, row, number, logp[place])
        yield
        keep = [n for n, row in enumerate(rows) if not row.reason]
        rows, chances = [rows[n] for n in keep], [chances[n] for n in keep]
        kept = torch.tensor(keep, dtype=torch.int64, device=logp.device)
        token = torch.tensor([chosen[n] for n in keep], device=logp.device)
        if 0 < len(keep) < len(chosen):
            state = keep_sources(state, kept, 1)


def _choose(logp: Tensor, how: How, chance: torch.Generator) -> int:
    if not how.temperature:
        return int(best_tokens(logp, BANNED)[1])
    kept = narrow(logp.double(), replace(how.narrowing, temperature=how.temperature), BANNED)
    uniform = torch.rand(1, 1, generator=chance, dtype=torch.float64).to(logp.device)
    return int(invert(kept.softmax(1), uniform))


def _add(writer: TextContinuation, row: ContinuationSoFar, number: int, logp: Tensor) -> None:
    how, prompt = row.ask.how, row.prompt
    ends = row.added.count(EOS) + (number == EOS)
    if number == EOS and ends >= how.ends:
        row.reason = "stop"
    else:
        row.added.append(number)
        if len(row.added) >= how.max_tokens:
            row.reason = "length"
    text = writer.added(prompt, row.row, row.added)
    begin, new = row.spelling(number)
    row.end += len(new) if row.reason != "stop" else 0
    # The text may differ from what the tokens spell: it was normalised, or ends in a space.
    begin = max(len(prompt), begin + len(prompt) + len(text.rstrip(HALF)) - row.end)
    best = logp.topk(min(how.logprobs, len(logp)))
    likeliest = list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
    rest = text[begin - len(prompt) :]
    row.tokens.append(_token(writer, how, begin, rest, number, float(logp[number]), likeliest))
    stops = [place for stop in how.stop if (place := text.find(stop)) >= 0]
    if stops:
        text, row.reason = text[: min(stops)], "stop"
    row.text = text
    row.sure = len(text) if row.reason else len(text) - _held(text, how.stop)


def spaced(piece: str) -> str:
    """A piece as text: with its space, and a line end for </s>."""
    return "\n" if piece in ("<eos>", "</s>") else piece.replace("▁", " ")


def _held(text: str, stops: Sequence[str]) -> int:
    """Number of characters at the end that may be the beginning of a stop string, or half a character."""
    begun = 0
    for stop in stops:
        at = text.find(stop[0], max(0, len(text) - len(stop) + 1))
        while at >= 0 and not stop.startswith(text[at:]):
            at = text.find(stop[0], at + 1)
        begun = max(begun, len(text) - at if at >= 0 else 0)
    return max(begun, len(text) - len(text.rstrip(HALF)))


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
