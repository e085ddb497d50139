"""Continue several texts together, token by token, for `/v1/completions` and the page.

Each row has its own random generator and leaves the batch when it ends, so its text does not depend on the
other rows. The model reads texts with the same number of tokens together. Read next: ../search/greedy.py,
the same loop without output between the steps; completions.py.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.search.candidates import best_tokens
from weft.search.filters import invert, narrow
from weft.search.offered import Narrowing
from weft.serve.batcher import ClientLeft, Stopped
from weft.serve.served import ServedRun
from weft.tasks.abilities import ContinuesText, Expected, TextContinuation
from weft.text.vocabulary import EOS, PAD, SOS, UNK
from weft.tree import keep_sources

BANNED = (PAD, UNK, SOS)
CHARACTERS = 4  # of a token, roughly
AT_ONCE = 8  # prompts scored before other requests get a turn
HALF = "\ufffd"
"""What a tokenizer writes for a character whose last bytes are still missing."""

LEAST = -9999.0
"""Reported for what is impossible, as OpenAI does: JSON has no infinity."""


@dataclass(frozen=True, kw_only=True)
class How:
    """Settings for the continuation of one text.

    Args:
        max_tokens: maximum number of new tokens.
        temperature: 0 takes the most probable token.
        narrowing: what else is drawn from; its temperature is not used.
        seed: seed of the row's random generator.
        ends: number of </s> after which the text ends.
        stop: strings before which the text ends.
        logprobs: number of alternatives to report per token.
        scored: report the tokens of the prompt too.
    """

    max_tokens: int
    temperature: float = 1.0
    narrowing: Narrowing = field(default_factory=Narrowing)
    seed: int = 1
    ends: int = 1
    stop: tuple[str, ...] = ()
    logprobs: int = 0
    scored: bool = False


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
