"""The best candidates are those of a full sort, whatever the size, the ties and the gaps."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from weft.search.candidates import BLOCK, best_candidates, best_tokens

SIZES = [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5, 1031]


def by_sorting(
    logp: np.ndarray, base: np.ndarray, count: int, banned: list[int]
) -> list[list[tuple[float, int, int]]]:
    """NumPy: every possible sum, sorted by value, parent, token."""
    sources, width = base.shape
    vocabulary = logp.shape[1]
    sums = base[:, :, None] + logp.reshape(sources, width, vocabulary).astype(np.float64)
    sums[base == -np.inf] = -np.inf
    sums[:, :, banned] = -np.inf
    parent, token = np.divmod(np.arange(width * vocabulary), vocabulary)
    found = []
    for row in sums.reshape(sources, -1):
        order = np.lexsort((token, parent, -row))[:count]
        found.append([(row[i], parent[i], token[i]) for i in order if row[i] > -np.inf])
    return found


@given(
    seed=st.integers(0, 9999),
    vocabulary=st.sampled_from(SIZES),
    sources=st.integers(1, 5),
    width=st.integers(1, 5),
    count=st.integers(1, 13),
    values=st.sampled_from([0, 1, 3, 50]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    dead=st.booleans(),
    num_banned=st.integers(0, 4),
)
def test_equals_a_full_sort(
    seed: int,
    vocabulary: int,
    sources: int,
    width: int,
    count: int,
    values: int,
    dtype: torch.dtype,
    dead: bool,
    num_banned: int,
) -> None:
    draw = np.random.default_rng(seed)
    shape = (sources * width, vocabulary)
    numbers = -draw.integers(1, values + 1, shape) / 2 if values else -draw.exponential(3.0, shape)
    logp = torch.tensor(numbers).to(dtype)
    base = torch.tensor(-draw.integers(0, 4, (sources, width)) / 2)
    if dead:
        base[:, 1:] = -np.inf
        logp.view(sources, width, vocabulary)[:, 1:] = np.nan  # nobody looks at the dead
    banned = draw.integers(0, vocabulary, num_banned).tolist()
    with np.errstate(invalid="ignore"):
        want = by_sorting(logp.double().numpy(), base.numpy(), count, banned)
    value, parent, token = best_candidates(logp, base, count, banned)
    assert value.shape == parent.shape == token.shape == (sources, count)
    for row in range(sources):
        got = list(zip(value[row].tolist(), parent[row].tolist(), token[row].tolist(), strict=True))
        assert [one for one in got if one[0] > -np.inf] == want[row]
        assert all(0 <= one[2] < vocabulary for one in got), (
            "an impossible token is still one of the vocabulary"
        )


@pytest.mark.parametrize("vocabulary", SIZES)
@pytest.mark.parametrize("tied", [False, True])
def test_nan_comes_first(vocabulary: int, tied: bool) -> None:
    """Where one row holds NaN its best value is NaN, so that the search can refuse it."""
    logp = torch.full((3, vocabulary), -1.0) if tied else -torch.rand(3, vocabulary) - 1
    logp[1, vocabulary // 2] = torch.nan
    value = best_candidates(logp, torch.zeros(3, 1, dtype=torch.float64), 3).value
    assert value[:, 0].isnan().tolist() == [False, True, False]


def test_a_view_of_a_larger_tensor_will_do() -> None:
    logits = torch.randn(6, 2, 201)
    base = torch.zeros(3, 2, dtype=torch.float64)
    for one, other in zip(
        best_candidates(logits[:, 1], base, 4), best_candidates(logits[:, 1].clone(), base, 4), strict=True
    ):
        assert torch.equal(one, other)


def test_the_step_s_tensor_is_left_as_it_was() -> None:
    logp = torch.randn(4, 130)
    before = logp.clone()
    best_candidates(logp, torch.zeros(2, 2, dtype=torch.float64), 5, banned=(0, 65))
    assert torch.equal(logp, before)


@given(
    seed=st.integers(0, 9999),
    vocabulary=st.sampled_from(SIZES),
    rows=st.integers(1, 7),
    values=st.sampled_from([0, 1, 3]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    num_banned=st.integers(0, 4),
)
def test_the_best_token_is_the_first_of_the_largest(
    seed: int, vocabulary: int, rows: int, values: int, dtype: torch.dtype, num_banned: int
) -> None:
    draw = np.random.default_rng(seed)
    shape = (rows, vocabulary)
    logp = torch.tensor(
        -draw.integers(1, values + 1, shape) / 2 if values else -draw.exponential(3.0, shape)
    ).to(dtype)
    banned = draw.choice(vocabulary, min(num_banned, vocabulary), replace=False).tolist()
    left = logp.double().numpy()
    left[:, banned] = -np.inf
    value, token = best_tokens(logp, banned)
    assert value.tolist() == left.max(1).tolist()
    possible = left.max(1) > -np.inf
    assert token.numpy()[possible].tolist() == left.argmax(1)[possible].tolist()
