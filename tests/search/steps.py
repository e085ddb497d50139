"""Small models for the search to drive, and what it must find, worked out in plain Python.

A state here is a NamedTuple of what each hypothesis owns and of what belongs to its source.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from weft.search.hypotheses import norm
from weft.search.step import Step

NOTHING = -float("inf")


class Shared(NamedTuple):
    """What belongs to a source: its table of log-probabilities, [B, T, V, V]."""

    per_source = True
    table: Tensor


class Own(NamedTuple):
    """What a hypothesis carries: how many tokens it has written, and the last but one, [N]."""

    time: Tensor
    before: Tensor


class Whole(NamedTuple):
    """The state of `table_step`."""

    shared: Shared
    own: Own


class Calls:
    """Table-driven steps whose answers depend on source, time and the last two tokens; counts its rows.

    logp of row (b, w) is table[b, time, token] rolled by the token before: the wrong row of any part
    of the state gives another answer.
    """

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.tables: list[Tensor] = []

    def __call__(self, token: Tensor, state: Whole) -> tuple[Tensor, Whole]:
        table, (time, before) = state.shared.table, state.own
        self.rows.append(len(token))
        self.tables.append(table)
        width, left = divmod(len(token), len(table))
        assert left == 0, "rows are not a multiple of sources"
        source = torch.arange(len(token)) // width
        logp = table[source, time, token]
        place = (torch.arange(table.shape[3])[None] + before[:, None]) % table.shape[3]
        return logp.gather(1, place), Whole(state.shared, Own(time + 1, token))


def start(table: Tensor) -> Whole:
    zero = torch.zeros(len(table), dtype=torch.int64)
    return Whole(Shared(table), Own(zero, zero.clone()))


def random_table(
    sources: int, longest: int, vocabulary: int, seed: int, *, sharp: float = 1.5, dtype=torch.float64
) -> Tensor:
    """Proper log-probabilities [B, T, V, V]."""
    generator = torch.Generator().manual_seed(seed)
    shape = (sources, longest, vocabulary, vocabulary)
    logits = sharp * torch.randn(shape, generator=generator, dtype=torch.float64)
    return logits.log_softmax(3).to(dtype)


def tied_table(sources: int, longest: int, vocabulary: int, seed: int) -> Tensor:
    """Log-probabilities from -0.5, -1, -1.5, -2: sums are exact and equal ones are everywhere."""
    generator = torch.Generator().manual_seed(seed)
    shape = (sources, longest, vocabulary, vocabulary)
    return -0.5 * torch.randint(1, 5, shape, generator=generator).double()


def first(sources: int) -> Tensor:
    return torch.zeros(sources, dtype=torch.int64)


def next_logp(table: Tensor, source: int, prefix: Sequence[int]) -> list[float]:
    """What `Calls` says after a prefix (first token 0), in plain Python."""
    whole = [0, 0, *prefix]
    row = table[source, len(prefix), whole[-1]].tolist()
    return [row[(token + whole[-2]) % len(row)] for token in range(len(row))]


class Found(NamedTuple):
    tokens: list[int]
    length: int
    logp: float
    score: float


def enumerate_all(
    table: Tensor, source: int, *, eos: int, limit: int, alpha: float, kind: str, banned: Sequence[int] = ()
) -> list[Found]:
    """Every sequence, ended ones by score and then cut ones by score."""
    vocabulary = [token for token in range(table.shape[3]) if token not in banned]
    ended, cut = [], []
    for length in range(1, limit + 1):
        words = [token for token in vocabulary if token != eos]
        for body in itertools.product(words, repeat=length - 1):
            for last in vocabulary if length == limit else [eos]:
                tokens = [*body, last]
                logp = sum(next_logp(table, source, tokens[:t])[tokens[t]] for t in range(length))
                found = Found(tokens, length, logp, logp / norm(length, alpha, kind))
                (ended if last == eos else cut).append(found)
    return sorted(ended, key=lambda f: -f.score) + sorted(cut, key=lambda f: -f.score)


def plain_beam(
    table: Tensor,
    source: int,
    *,
    eos: int,
    limit: int,
    width: int,
    nbest: int,
    alpha: float,
    kind: str,
    enough: float,
    banned: Sequence[int] = (),
) -> list[Found]:
    """Beam search of one source with lists, without the early finish (rule 3 of beam.py)."""
    alive: list[tuple[list[int], float]] = [([], 0.0)]
    ended: list[Found] = []
    for time in range(1, limit + 1):
        grown = [
            (total + logp, parent, token)
            for parent, (tokens, total) in enumerate(alive)
            for token, logp in enumerate(next_logp(table, source, tokens))
            if token not in banned and logp > NOTHING
        ]
        grown.sort(key=lambda one: (-one[0], one[1], one[2]))
        for total, parent, token in grown[:width]:
            if token == eos:
                tokens = [*alive[parent][0], eos]
                ended.append(Found(tokens, time, total, total / norm(time, alpha, kind)))
        going = [one for one in grown if one[2] != eos][:width]
        alive = [([*alive[parent][0], token], total) for total, parent, token in going]
        best = alive[0][1] / norm(time, alpha, kind) if alive else NOTHING
        if len(ended) >= enough and best <= max(one.score for one in ended):
            alive = []
            break
    cut = [Found(tokens, limit, total, total / norm(limit, alpha, kind)) for tokens, total in alive]
    return (sorted(ended, key=lambda f: -f.score) + cut)[:nbest]


def as_found(hypotheses, source: int) -> list[Found]:
    """The hypotheses of one source that exist, as the oracles give them."""
    return [
        Found(tokens[:length], length, logp, score)
        for tokens, length, logp, score in zip(*(part[source].tolist() for part in hypotheses), strict=True)
        if length
    ]


def same(got: list[Found], want: list[Found], tolerance: float = 1e-12) -> None:
    assert [(one.tokens, one.length) for one in got] == [(one.tokens, one.length) for one in want]
    for one, other in zip(got, want, strict=True):
        assert abs(one.logp - other.logp) <= tolerance
        assert abs(one.score - other.score) <= tolerance


def gru_step(seed: int, vocabulary: int, size: int = 13) -> tuple[Step, Tensor]:
    """A recurrent step in float64 whose state is a bare tensor [N, H]; and its embedding of sources."""
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64)  # noqa: E731
    embed, update, candidate, out = (
        draw(vocabulary, size),
        draw(size, size),
        draw(size, size),
        draw(size, vocabulary),
    )

    def step(token: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        x = embed[token]
        gate = (x + h @ update).sigmoid()
        h = gate * h + (1 - gate) * (x + h @ candidate).tanh()
        return (1.5 * h @ out).log_softmax(1), h

    return step, draw(64, size)
