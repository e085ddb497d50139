"""The laws of a pool, for every class of weft/nn/pools.py, and its equation."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from tests.laws.members import (
    ENCODERS,
    POOLS,
    READ,
    ROWS,
    SIZE,
    SOURCE,
    SOURCE_LENGTHS,
    Make,
    close,
    gradcheck,
    loud,
    normal,
    ready,
    source,
)
from tests.oracles import attention as oracle
from weft import masks, probe
from weft.errors import ConfigError
from weft.nn.encoders.encoder import Memory
from weft.nn.pools import Pool, Queries
from weft.testing.values import every_parameter_reached

every_pool = pytest.mark.parametrize("make", POOLS.values(), ids=POOLS)


def memory_of(dtype: torch.dtype = torch.float64) -> Memory:
    mask = source()[1]
    states = loud(normal(ROWS, SOURCE, SIZE, seed=5, dtype=dtype), mask)
    return Memory(states, mask, masks.mean(states, mask))


def rows_of(memory: Memory, rows: list[int], length: int) -> Memory:
    return Memory(memory.states[rows, :length], memory.mask[rows, :length], memory.summary[rows])


def pool_of(make: Make, seed: int = 3) -> Pool:
    return ready(lambda: make(SIZE), seed=seed)


@every_pool
def test_what_a_pool_promises(make: Make) -> None:
    pool = pool_of(make)
    assert pool(memory_of()).shape == (ROWS, pool.size)


@every_pool
def test_law_2_padding_and_neighbours_change_nothing(make: Make) -> None:
    pool, memory = pool_of(make), memory_of()
    got = pool(memory)
    longer = torch.cat([memory.states, torch.full((ROWS, 4, SIZE), -50.0, dtype=torch.float64)], 1)
    mask = torch.cat([memory.mask, torch.zeros(ROWS, 4, dtype=torch.bool)], 1)
    close(pool(Memory(longer, mask, memory.summary)), got)
    for row, length in enumerate(SOURCE_LENGTHS):
        close(pool(rows_of(memory, [row], length)), got[row : row + 1])


@every_pool
def test_law_4_chosen_rows(make: Make) -> None:
    pool, memory = pool_of(make), memory_of()
    rows = [4, 1, 1, 0, 3, 3, 2]
    close(pool(rows_of(memory, rows, SOURCE)), pool(memory)[rows])


@every_pool
def test_law_5_gradcheck_and_gradients_reach_every_parameter(make: Make) -> None:
    pool, whole = pool_of(make), memory_of()
    mask = whole.mask[1:3, :4]

    def pooled(states: Tensor) -> Tensor:
        return pool(Memory(states, mask, masks.mean(states, mask)))

    states = whole.states[1:3, :4]
    gradcheck(pool, pooled, states)
    states = states.clone().requires_grad_()
    every_parameter_reached(pool, pooled(states))
    gradient = torch.autograd.grad(pooled(states).sum(), states)[0]
    assert not gradient[~mask].any(), "padding has an influence"


@every_pool
def test_law_10_saved_and_loaded_gives_the_same(make: Make) -> None:
    pool, other = pool_of(make), pool_of(make, seed=4)
    other.load_state_dict(load(save(pool.state_dict())))
    close(other(memory_of()), pool(memory_of()), 0.0)


@every_pool
@pytest.mark.parametrize("reads", ["recurrent((13,))", "transformer(6)"])
def test_it_pools_what_an_encoder_read(make: Make, reads: str) -> None:
    encoder = ready(lambda: ENCODERS[reads](READ))
    pool = ready(lambda: make(encoder.size))
    assert pool(encoder(*source())).shape == (ROWS, pool.size)


@pytest.mark.parametrize(
    ("name", "equation"),
    [
        ("first()", lambda h: h[0]),
        ("last()", lambda h: h[-1]),
        ("mean()", lambda h: h.mean(0)),
        ("max()", lambda h: h.max(0)),
    ],
)
def test_a_pool_without_parameters_is_its_equation(
    name: str, equation: Callable[[np.ndarray], np.ndarray]
) -> None:
    memory = memory_of()
    got = POOLS[name](SIZE)(memory).numpy()
    for row, length in enumerate(SOURCE_LENGTHS):
        want = equation(memory.states[row, :length].numpy())
        np.testing.assert_allclose(got[row], want, rtol=1e-10, atol=1e-10)


def test_learned_queries_are_their_equation() -> None:
    pool = ready(lambda: Queries(SIZE, num_queries=3, key_size=11, value_size=7))
    memory = memory_of()
    with probe.probe() as seen:
        got = pool(memory).detach().numpy()
    assert seen["attention"][0].shape == (ROWS, 3, SOURCE)
    w_k, w_v = (each.weight.detach().numpy() for each in (pool.attention.key, pool.attention.value))
    for row, length in enumerate(SOURCE_LENGTHS):
        h = memory.states[row, :length].numpy()
        wants = [
            oracle.attention(oracle.scaled, query, h @ w_k.T, h @ w_v.T)[1]
            for query in pool.queries.detach().numpy()
        ]
        np.testing.assert_allclose(got[row], np.concatenate(wants), rtol=1e-10, atol=1e-10)


def test_no_query_is_refused() -> None:
    with pytest.raises(ConfigError, match="num_queries"):
        Queries(SIZE, num_queries=0)
