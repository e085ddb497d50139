"""The interface of search to a model: `step(token [N], state) -> (logp [N, V], state)`, and rules around it.

Rows are ordered by source: with W hypotheses per source, row b * W + w is hypothesis w of source b. What
belongs to a source (`per_source`, see tree.py) has B rows while the tokens have B * W.

Rules for the next token, given the tokens so far, are put around a step by `ruled`: a token that breaks one
gets log-probability -inf, the others keep theirs. `ensemble` makes one step of several. Read next: greedy.py,
then beam.py; required.py, for words that must appear, which no such rule can enforce.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from weft.errors import ConfigError, ShapeError
from weft.search.offered import Decoding, Mean, Narrowing, Stop
from weft.shapes import check_shape
from weft.tree import State, leaves
from weft.wording import kind_of


class Step(Protocol):
    """What a search calls: a function, or `weft.models.Generator.step`.

    Example:
        >>> bigram = torch.tensor([[0.1, 0.9], [0.5, 0.5]]).log()  # row: the token before
        >>> def step(token, state):
        ...     return bigram[token], state
        >>> logp, state = step(torch.tensor([0, 1, 0]), None)
        >>> logp.shape  # [N, V]
        torch.Size([3, 2])
    """

    def __call__(self, token: Tensor, state: State, /) -> tuple[Tensor, State]:
        """Token [N] int64 and a state to log-probabilities [N, V] of the next token, and the next state."""


WHOLE = (torch.int64, torch.int32)

COMPACT_SHARE = 1 / 8
"""Finished sources are removed once they are this share of the batch; fewer are not worth a copy."""

ROUNDING = 1e-3
"""A log-probability may exceed 0 by this much (bfloat16 rounds); more means that the step gives logits."""


def source_limits(max_length: int | Tensor, first: Tensor, state: State = None) -> Tensor:
    """The maximum number of tokens for each source, eos counted: [B] int64; also checks the first tokens."""
    if not isinstance(first, Tensor) or first.dim() != 1 or first.dtype not in WHOLE:
        got = f"{list(first.shape)} of {first.dtype}" if isinstance(first, Tensor) else type(first).__name__
        raise ShapeError(f"first: expected a tensor [sources] of int64, a token for each source, got {got}")
    rows = {leaf.shape[0] for leaf in leaves(state) if leaf.dim()} - {len(first)}
    if rows:
        raise ShapeError(f"state: expected one of {len(first)} rows, as first has, got {min(rows)}")
    whole = isinstance(max_length, int | Tensor | Sequence) and not isinstance(max_length, str)
    limits = torch.as_tensor(max_length if whole else 0.5, device=first.device)
    if limits.dtype not in WHOLE:
        raise ConfigError(f"max_length: expected a whole number of at least 1, got {max_length!r}")
    limits = limits.long()
    if limits.dim() > 1 or (limits.dim() == 1 and len(limits) != len(first)):
        raise ConfigError(
            f"max_length: expected one number, or one for each of {len(first)} sources, "
            f"got shape {list(limits.shape)}"
        )
    if limits.numel() and int(limits.min()) < 1:
        raise ConfigError(f"max_length: expected at least 1, got {int(limits.min())}")
    return limits.expand(len(first)).clone()


def checked_step(
    step: Step, token: Tensor, state: State, eos: int, banned: Sequence[int] = ()
) -> tuple[Tensor, State]:
    """One call of `step`, its result checked: one row per token, eos and banned tokens below V."""
    found: Any = step(token, state) if callable(step) else step
    pair = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], Tensor)
    if not pair or not found[0].is_floating_point():
        raise ConfigError(
            "step: expected a function of a token and a state that returns log-probabilities [N, V] and the "
            f"next state, got {kind_of(found)}"
        )
    logp, state = found
    check_shape("log-probabilities of a search step", logp, len(token), None)
    for name, symbol in (("eos", eos), *(("banned token", symbol) for symbol in banned)):
        if not isinstance(symbol, Integral) or not 0 <= symbol < logp.shape[1]:
            raise ConfigError(
                f"{name}: expected a token of the model's vocabulary, 0 to {logp.shape[1] - 1}, got {symbol}"
            )
    return logp, state


def check_best(best: Tensor, before: Tensor, time: int) -> None:
    """Check that these are log-probabilities, by the best candidates [N] after this step and before it.

    NaN counts as the largest value when candidates are chosen, so it appears among the best and [N, V] need
    not be read again.
    """
    bad = ~(best <= before + ROUNDING)
    if not bool(bad.any()):
        return
    row = int(bad.int().argmax())
    if bool(best[row].isnan()):
        raise ConfigError(
            f"search step {time}, row {row}: a log-probability is NaN; the model's parameters or its "
            "input are not finite, so look for NaN in the checkpoint or go back to an earlier one"
        )
    gain = float(best[row] - before[row])
    raise ConfigError(
        f"search step {time}, row {row}: expected log-probabilities of at most 0, got {gain:.4g}; "
        "let the step return log_softmax of its logits"
    )


def no_token(source: int) -> ConfigError:
    """The error for a source whose every continuation has probability zero."""
    return ConfigError(
        f"search, source {source}: every token has probability zero; ban fewer tokens or correct the step"
    )


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


def ensemble(steps: Sequence[Step], mean: Mean = "probability") -> Step:
    """Combine several steps into one; its state is the tuple of their states.

    "probability": log of the mean of p_m (a mixture). "log": mean of log p_m (a product, high only
    if all members agree; it is not normalised, so scores are lower).
    """
    if not steps:
        raise ConfigError("ensemble: expected at least one model, got none")
    if mean not in ("probability", "log"):
        raise ConfigError(f"ensemble: expected 'probability' or 'log', got mean {mean!r}")

    def step(token: Tensor, states: tuple[State, ...]) -> tuple[Tensor, tuple[State, ...]]:
        answers = [one(token, state) for one, state in zip(steps, states, strict=True)]
        sizes = {logp.shape[1] for logp, _ in answers}
        if len(sizes) > 1:
            raise ConfigError(
                f"ensemble: expected one vocabulary, got {' and '.join(map(str, sorted(sizes)))} tokens; "
                "use models with the same vocabulary"
            )
        every = torch.stack([logp for logp, _ in answers])
        logp = every.mean(0) if mean == "log" else every.logsumexp(0) - math.log(len(steps))
        return logp.clamp_(max=0.0), tuple(state for _, state in answers)

    return step
