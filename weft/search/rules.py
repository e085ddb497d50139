"""Rules for the next token, given the tokens so far: a prefix, a minimum length, no repeated n-gram.

Greedy search, sampling and beam search take rules; `ruled` puts them around the step of any search. A
token that breaks a
rule gets log-probability -inf; the others keep theirs. Read next: required.py, for words that must appear,
which a rule of this kind cannot enforce.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.offered import Decoding, Narrowing, Stop
from weft.search.step import Step
from weft.tree import State

INFINITY = float("inf")
Rule = Callable[[Tensor, Tensor], Tensor]
"""Maps logp [N, V] and the tokens so far, [N, t], to logp with -inf for forbidden tokens."""


class RuleState(NamedTuple):
    """The state of a step under rules."""

    written: Tensor | None  # [N, t] int64; None before the first step
    inner: State


def ruled(step: Step, state: State, rules: Sequence[Rule]) -> tuple[Step, State]:
    """The step and its initial state under these rules; unchanged without rules.

    Example:
        >>> import torch
        >>> even = lambda token, state: (torch.full((1, 4), 0.25).log(), state)
        >>> step, state = ruled(even, None, [prefix([2])])
        >>> step(torch.tensor([0]), state)[0].exp()
        tensor([[0.0000, 0.0000, 0.2500, 0.0000]])
    """
    if not rules:
        return step, state

    def under_rules(token: Tensor, state: RuleState) -> tuple[Tensor, RuleState]:
        if state.written is None:
            written = token.new_zeros(len(token), 0)
        else:
            written = torch.cat([state.written, token[:, None]], 1)
        logp, inner = step(token, state.inner)
        for rule in rules:
            logp = rule(logp, written)
        return logp, RuleState(written, inner)

    return under_rules, RuleState(None, state)


@dataclass(frozen=True)
class Prefix:
    """The hypothesis begins with these tokens; their log-probabilities count like all others.

    Args:
        tokens: to begin with.
        free: the first tokens that cost nothing, such as a symbol of the language.

    Example:
        >>> import torch
        >>> rule = prefix([2, 0])
        >>> rule(torch.zeros(1, 3), torch.tensor([[2]])).tolist()  # [N, V], tokens so far [N, t]
        [[0.0, -inf, -inf]]
    """

    tokens: Sequence[int]
    free: int = 0

    def __call__(self, logp: Tensor, written: Tensor) -> Tensor:
        time = written.shape[1]
        if time >= len(self.tokens):
            return logp
        only = torch.full_like(logp, -INFINITY)
        only[:, self.tokens[time]] = 0 if time < self.free else logp[:, self.tokens[time]]
        return only


@dataclass(frozen=True)
class LeastLength:
    """At least this many tokens before eos.

    Raises:
        ConfigError: below 0.

    Example:
        >>> import torch
        >>> rule = least_length(2, eos=1)
        >>> rule(torch.zeros(1, 3), torch.tensor([[2]])).tolist()  # [N, V], tokens so far [N, t]
        [[0.0, -inf, 0.0]]
    """

    tokens: int
    eos: int

    def __post_init__(self) -> None:
        if self.tokens < 0:
            raise ConfigError(f"min_length: expected 0 or more tokens, got {self.tokens}")

    def __call__(self, logp: Tensor, written: Tensor) -> Tensor:
        if written.shape[1] >= self.tokens:
            return logp
        return logp.index_fill(1, torch.tensor([self.eos], device=logp.device), -INFINITY)


@dataclass(frozen=True)
class NoRepeat:
    """No n-gram occurs twice in a hypothesis (n-gram blocking, Paulus et al. 2018, section 2.5).

    Args:
        size: n; 1 forbids any token twice.

    Raises:
        ConfigError: below 1.

    Example:
        >>> import torch
        >>> rule = no_repeat(1)
        >>> rule(torch.zeros(1, 3), torch.tensor([[2, 0]])).tolist()  # [N, V], tokens so far [N, t]
        [[-inf, 0.0, -inf]]
    """

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"no_repeat_ngram: expected at least 1, got {self.size}")

    def __call__(self, logp: Tensor, written: Tensor) -> Tensor:
        if written.shape[1] < self.size:
            return logp
        grams = written.unfold(1, self.size, 1)  # [N, t - n + 1, n]
        last = written[:, written.shape[1] - self.size + 1 :]  # the last n - 1 tokens
        again = (grams[..., :-1] == last[:, None]).all(2)
        lowest = torch.where(again, -INFINITY, INFINITY).to(logp.dtype)
        return logp.scatter_reduce(1, grams[..., -1], lowest, "amin")


prefix, least_length, no_repeat = Prefix, LeastLength, NoRepeat


def decoding_rules(how: Decoding, eos: int, begin: Sequence[int] = (), *, free: int = 0) -> list[Rule]:
    """The rules that these settings ask for, after the tokens that a text begins with."""
    found: list[Rule] = [Prefix(begin, free)] if begin else []
    if how.min_length:
        found.append(LeastLength(how.min_length, eos))
    if how.no_repeat_ngram:
        found.append(NoRepeat(how.no_repeat_ngram))
    return found


class SamplingRule(NamedTuple):
    """How `sample` draws tokens."""

    how: Narrowing
    generator: torch.Generator


class SearchRequest(NamedTuple):
    """What is searched, as `beam` takes it; a beam has `norm`, sampling `draw`, greedy search neither."""

    first: Tensor  # [B]
    limits: Tensor  # [B]
    eos: int
    banned: Sequence[int]
    width: int = 1
    nbest: int = 1
    kept: int = 1  # finished hypotheses of a source
    enough: int = 1
    stop: Stop = "full"
    norm: Tensor | None = None  # [T + 1]
    draw: SamplingRule | None = None
    rules: Sequence[Rule] = ()
    recorded: bool = False  # as CUDA graphs (captured.py)
