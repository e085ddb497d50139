"""Greedy search: the most probable token at every step.

Read next: sampling.py, beam.py (a beam of one is greedy).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from weft.search.candidates import best_tokens
from weft.search.hypotheses import Hypotheses
from weft.search.rollout import rollout
from weft.search.rules import Rule, SearchRequest
from weft.search.step import Step, check_best, no_token, source_limits
from weft.tree import State


@torch.no_grad()
def greedy_search(
    step: Step,
    state: State,
    first: Tensor,
    *,
    eos: int,
    max_length: int | Tensor,
    banned: Sequence[int] = (),
    rules: Sequence[Rule] = (),
    recorded: bool = False,
) -> Hypotheses:
    """The most probable token at every step; ties go to the lowest id. Deterministic.

    Args:
        step: maps token [N] and state to logp [N, V] and state (step.py).
        state: the state before the first step, one row per source.
        first: [B] int64, the token fed first, usually sos.
        eos: the token that ends a hypothesis.
        max_length: maximum number of tokens, eos counted; one number, or [B] for a limit per source.
        banned: tokens never chosen.
        rules: for the next token, given those so far (rules.py).
        recorded: record the steps as CUDA graphs and replay them; a CPU takes the same steps.

    Returns:
        Hypotheses with N = 1, in the order of the sources; the score is logp.

    Raises:
        ConfigError: the step gives NaN, or no possible token.

    Example:
        >>> bigram = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4], [0.4, 0.5, 0.1]]).log()
        >>> found = greedy_search(
        ...     lambda token, state: (bigram[token], state), None, torch.tensor([0]), eos=2, max_length=3,
        ... )
        >>> found.tokens.tolist(), found.lengths.tolist()  # [B, 1, T], [B, 1]
        ([[[1, 0, 1]]], [[3]])
    """

    def choose(logp: Tensor, rows: Tensor, time: int) -> tuple[Tensor, Tensor]:
        value, token = best_tokens(logp, banned)
        check_best(value, torch.zeros_like(value), time)
        if bool((value == -float("inf")).any()):
            raise no_token(int(rows[value.argmin()]))
        return token, value

    limits = source_limits(max_length, first, state)
    asked = SearchRequest(first, limits, eos, banned, rules=rules, recorded=recorded)
    return rollout(step, state, asked, choose)
