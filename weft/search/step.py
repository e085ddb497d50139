"""The interface of search to a model: `step(token [N], state) -> (logp [N, V], state)`.

Rows are ordered by source: with W hypotheses per source, row b * W + w is hypothesis w of
source b. What belongs to a source (`per_source`, see tree.py) has B rows while the tokens have
B * W. Read next: greedy.py, then beam.py.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Protocol

import torch
from torch import Tensor

from weft.errors import ConfigError, ShapeError
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
    """Check that these are log-probabilities, by the best candidates only.

    NaN counts as the largest value when candidates are chosen, so it appears among the best and [N, V] need
    not be read again.

    Args:
        best: [N] the best cumulative log-probability after this step.
        before: [N] the best one before it.
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
