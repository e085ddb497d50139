"""Coverage enters the score of what ends, as Wu et al.'s formula says."""

import math

import pytest
import torch

from tests.search.steps import Calls, Found, Whole, as_found, enumerate_all, first, random_table, same, start
from weft.errors import ConfigError
from weft.probe import record
from weft.search.beam import beam_search, coverage_penalty, covering
from weft.search.hypotheses import norm
from weft.search.trace import Trace

EOS, LIMIT, BETA = 2, 5, 0.7
MASK = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [True] + [False] * 4])
LOOKS = torch.rand(3, 3, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)  # [B, V, S]
LOOKS = torch.where(MASK[:, None], LOOKS, 0.0) * 0.9


def looking(token: torch.Tensor, state: Whole) -> tuple[torch.Tensor, Whole]:
    """The table's step, whose attention depends on source and token."""
    width = len(token) // len(state.shared.table)
    record("attention", LOOKS[torch.arange(len(token)) // width, token])
    return Calls()(token, state)


def by_hand(source: int, found: Found) -> float:
    fed = [0, *found.tokens[:-1]]
    sums = [sum(float(LOOKS[source, token, s]) for token in fed) for s in range(int(MASK[source].sum()))]
    return BETA * sum(math.log(min(total, 1.0)) for total in sums)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_with_coverage_a_wide_beam_is_brute_force(alpha: float) -> None:
    table = random_table(3, LIMIT, 3, seed=5)
    step, state = covering(looking, start(table), MASK, lambda seen: seen["attention"][-1])
    found = beam_search(
        step,
        state,
        first(3),
        eos=EOS,
        max_length=LIMIT,
        width=3**LIMIT,
        nbest=4,
        length_penalty=alpha,
        patience=math.inf,
        penalty=lambda state: coverage_penalty(state, BETA),
    )
    for source in range(3):
        every = [
            one._replace(score=one.logp / norm(one.length, alpha) + by_hand(source, one))
            for one in enumerate_all(table, source, eos=EOS, limit=LIMIT, alpha=alpha, kind="length")
        ]
        every.sort(key=lambda one: (one.tokens[-1] != EOS, -one.score))
        same(as_found(found, source), every[:4], 1e-6)


def test_a_search_with_coverage_has_no_trace() -> None:
    with pytest.raises(ConfigError, match="cannot be replayed"):
        beam_search(
            Calls(),
            start(random_table(3, 4, 3, seed=1)),
            first(3),
            eos=EOS,
            max_length=4,
            width=2,
            trace=Trace(),
            penalty=lambda state: torch.zeros(3),
        )


def test_a_penalised_first_hypothesis_does_not_end_the_search_for_the_others() -> None:
    """One end has score log 0.1; the most probable hypothesis is penalised below it, the second is not."""
    eos, penalised = 3, 0
    rows = (
        torch.tensor([[0.5, 0.4, 1e-9, 0.1], [1e-9, 1e-9, 1.0, 1e-9], [1e-9, 1e-9, 1e-9, 1.0]]).double().log()
    )

    def step(token: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        time, bad = state[:, 0], state[:, 1] + (token == penalised) * (state[:, 0] > 0)
        return rows[time.clamp(max=2)], torch.stack([time + 1, bad], 1)

    found = beam_search(
        step,
        torch.zeros(1, 2, dtype=torch.long),
        torch.zeros(1, dtype=torch.long),
        eos=eos,
        max_length=5,
        width=3,
        patience=1 / 3,
        length_penalty=0.0,
        penalty=lambda state: -3.0 * state[:, 1],
    )
    assert found.tokens[0, 0, :3].tolist() == [1, 2, eos]
    assert found.score[0, 0].item() == pytest.approx(math.log(0.4), abs=1e-6)
