"""Continue several texts together, token by token, for `/v1/completions` and the page.

Each row has its own random generator and leaves the batch when it ends, so its text does not depend on the
other rows. The model reads texts with the same number of tokens together. Read next: ../search/rollout.py,
the same loop without output between the steps; completions.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.search import filters
from weft.search.candidates import best_candidates
from weft.search.sampling import invert
from weft.serve.job import Left, Stopped
from weft.serve.served import Served
from weft.tasks.abilities import Continuer, Continues
from weft.text.vocabulary import EOS, PAD, SOS, UNK
from weft.tree import keep_sources

BANNED = (PAD, UNK, SOS)
CHARACTERS = 4  # of a token, roughly


@dataclass(frozen=True, kw_only=True)
class How:
    """Settings for the continuation of one text.

    Args:
        max_tokens: maximum number of new tokens.
        temperature: 0 takes the most probable token.
        top_p: as in search/filters.py.
        seed: seed of the row's random generator.
        max_lines: number of line ends after which the text ends.
        stop: strings before which the text ends.
        logprobs: number of alternatives to report per token.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 1
    max_lines: int = 1
    stop: tuple[str, ...] = ()
    logprobs: int = 0


class Ask(NamedTuple):
    """A text and the settings of its continuation."""

    text: str
    how: How


class Token(NamedTuple):
    """A generated token."""

    piece: str
    logp: float
    top: dict[str, float]  # piece to log-probability, for the most probable ones


@dataclass
class Continued:
    """The continuation of one text so far."""

    ask: Ask
    given: list[int]
    added: list[int] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    text: str = ""  # the generated text, up to a stop string
    sure: int = 0  # number of characters that can no longer change
    reason: str = ""  # "stop" or "length" once it has ended
    most: int = 0  # maximum number of new tokens


def size_of(ask: Ask) -> int:
    """The characters that are read and written, roughly, for the choice of a lane."""
    return len(ask.text) + CHARACTERS * ask.how.max_tokens


def writer_of(run: Served, model: nn.Module | None = None) -> Continuer:
    """The writer of a run's language model, or of a changed copy of it."""
    ready = run.opened.ready
    assert isinstance(ready, Continues)
    return ready.writer(model or run.opened.model)


def go_on(writer: Continuer, asks: Sequence[Ask], stopped: Stopped) -> Iterator[list[Continued]]:
    """Generate one token per unfinished text and yield all rows, one per request, until all have ended.

    Raises:
        Left: no client is waiting any more.
    """
    rows = [Continued(ask, writer.tokens(ask.text)) for ask in asks]
    groups: dict[int, list[Continued]] = {}
    for row in rows:
        row.most = _most(writer, row)
        row.reason = "" if row.most else "length"
        if not row.reason:
            groups.setdefault(len(row.given), []).append(row)
    if not groups:
        yield rows
    for group in groups.values():
        for _ in _together(writer, group, stopped):
            yield rows


def _most(writer: Continuer, row: Continued) -> int:
    room, wanted = writer.room(len(row.given)), row.ask.how.max_tokens
    return wanted if room is None else min(wanted, room)


@torch.inference_mode()
def _together(writer: Continuer, rows: list[Continued], stopped: Stopped) -> Iterator[None]:
    state, token = writer.reader.start([row.given for row in rows])
    chances = [torch.Generator().manual_seed(row.ask.how.seed) for row in rows]
    while rows:
        if stopped():
            raise Left
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
    kept = filters.ban(logp.double(), BANNED)
    if not how.temperature:
        zero = torch.zeros(1, 1, dtype=torch.float64, device=logp.device)
        return int(best_candidates(kept, zero, 1).token)
    kept = filters.top_p(filters.temperature(kept, how.temperature), how.top_p)
    uniform = torch.rand(1, 1, generator=chance, dtype=torch.float64).to(logp.device)
    return int(invert(kept.softmax(1), uniform))


def _add(writer: Continuer, row: Continued, number: int, logp: Tensor) -> None:
    how = row.ask.how
    lines = row.added.count(EOS) + (number == EOS)
    if number == EOS and lines >= how.max_lines:
        row.reason = "stop"
    else:
        row.added.append(number)
        if len(row.added) >= row.most:
            row.reason = "length"
    count = min(how.logprobs, len(logp))
    best = logp.topk(count) if count else None
    pieces = [spaced(piece) for piece in writer.vocabulary.pieces([number])]
    top = {}
    if best is not None:
        names = map(spaced, writer.vocabulary.pieces(best.indices.tolist()))
        top = dict(zip(names, best.values.tolist(), strict=True))
    if row.reason != "stop":
        row.tokens.append(Token(pieces[0], float(logp[number]), top))
    text = writer.added(row.ask.text, row.given, row.added)
    ends = [place for stop in how.stop if (place := text.find(stop)) >= 0]
    if ends:
        text, row.reason = text[: min(ends)], "stop"
    row.text = text
    row.sure = len(text) if row.reason else len(text) - _held(text, how.stop)


def spaced(piece: str) -> str:
    """A piece as text: with its space, and a line end for </s>."""
    return "\n" if piece in ("<eos>", "</s>") else piece.replace("▁", " ")


def _held(text: str, stops: Sequence[str]) -> int:
    """Number of characters at the end that may be the beginning of a stop string."""
    return max(
        (n for stop in stops for n in range(1, min(len(stop), len(text) + 1)) if text.endswith(stop[:n])),
        default=0,
    )
