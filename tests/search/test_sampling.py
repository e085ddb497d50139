"""Samples follow the exact distribution; the same seed gives the same samples."""

from collections import Counter

import pytest
import torch
from torch import Tensor

from tests.search.steps import Calls, as_found, enumerate_all, first, next_logp, random_table, start
from tests.slow import slow
from weft.errors import ConfigError
from weft.search.greedy import greedy_search
from weft.search.sampling import invert, sample

EOS, LIMIT, DRAWS = 2, 3, 20_000


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def p_value(counts: list[int], prob: list[float]) -> float:
    """Pearson's chi-square; cells expected below 5 are put together."""
    total = sum(counts)
    cells = sorted(zip(prob, counts, strict=True), reverse=True)
    large = [(p * total, n) for p, n in cells if p * total >= 5]
    rest = [(p * total, n) for p, n in cells if p * total < 5]
    if rest:
        large.append((sum(p for p, _ in rest), sum(n for _, n in rest)))
    statistic = sum((n - e) ** 2 / e for e, n in large if e > 0)
    half = torch.tensor([(len(large) - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


def narrowed(logp: list[float], degree: float, k: int | None, p: float | None) -> list[float]:
    """Temperature, top-k, top-p of one row by their definitions, in plain Python."""
    weight = [(2.718281828459045**one) ** (1 / degree) for one in logp]
    order = sorted(range(len(weight)), key=lambda token: -weight[token])
    keep = order[:k]
    if p is not None:
        whole, held, nucleus = sum(weight[token] for token in keep), 0.0, []
        for token in keep:
            if held >= p:
                break
            nucleus.append(token)
            held += weight[token] / whole
        keep = nucleus
    whole = sum(weight[token] for token in keep)
    return [weight[token] / whole if token in keep else 0.0 for token in range(len(weight))]


@pytest.mark.parametrize(
    ("degree", "k", "p"),
    [(0.7, None, None), (1.5, 3, 0.7), *slow([(1.0, None, None), (1.3, 3, None), (1.0, None, 0.8)])],
)
def test_samples_follow_the_exact_distribution_of_sequences(
    degree: float, k: int | None, p: float | None
) -> None:
    table = random_table(2, LIMIT, 4, seed=7, sharp=1.0)
    drawn = sample(
        Calls(),
        start(table),
        first(2),
        eos=EOS,
        max_length=LIMIT,
        temperature=degree,
        top_k=k,
        top_p=p,
        count=DRAWS,
        generator=seeded(5),
    )
    for source in range(2):
        every = enumerate_all(table, source, eos=EOS, limit=LIMIT, alpha=0.0, kind="length")
        prob = []
        for one in every:
            share = 1.0
            for t, token in enumerate(one.tokens):
                share *= narrowed(next_logp(table, source, one.tokens[:t]), degree, k, p)[token]
            prob.append(share)
        assert sum(prob) == pytest.approx(1.0)
        found = as_found(drawn, source)
        seen = Counter(tuple(one.tokens) for one in found)
        counts = [seen[tuple(one.tokens)] for one in every]
        assert sum(counts) == DRAWS, "a sample is one of the sequences"
        assert all(n == 0 for n, share in zip(counts, prob, strict=True) if share == 0)
        assert p_value(counts, prob) > 1e-3
        own = {tuple(one.tokens): one.logp for one in every}
        assert all(abs(one.logp - own[tuple(one.tokens)]) < 1e-12 for one in found), "logp is the model's"


def test_the_chi_square_sees_a_wrong_distribution() -> None:
    assert p_value([5200, 4800], [0.5, 0.5]) < 1e-3
    assert p_value([5020, 4980], [0.5, 0.5]) > 0.5


def drawn_tokens(table: Tensor, seed: int, count: int = 3) -> Tensor:
    return sample(
        Calls(),
        start(table),
        first(len(table)),
        eos=EOS,
        max_length=11,
        count=count,
        generator=seeded(seed),
    ).tokens


def test_the_same_seed_gives_the_same_samples_and_another_seed_others() -> None:
    table = random_table(7, 11, 13, seed=1)
    assert torch.equal(drawn_tokens(table, 3), drawn_tokens(table, 3))
    assert drawn_tokens(table, 3).tolist() != drawn_tokens(table, 4).tolist()


def test_samples_do_not_depend_on_when_a_neighbour_ends() -> None:
    table = random_table(7, 11, 13, seed=1)
    other = table.clone()
    other[0, 0] = -50.0
    other[0, 0, :, EOS] = 0.0  # source 0 now ends at once and leaves
    mine, theirs = drawn_tokens(table, 3), drawn_tokens(other, 3)
    assert (theirs[0] == EOS).all()
    size = min(mine.shape[2], theirs.shape[2])
    assert torch.equal(mine[1:, :, :size], theirs[1:, :, :size])


def test_top_k_of_one_is_greedy() -> None:
    table = random_table(11, 7, 67, seed=4)
    limits = torch.arange(11) % 7 + 1
    want = greedy_search(Calls(), start(table), first(11), eos=EOS, max_length=limits, banned=(5,))
    for settings in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}):
        got = sample(
            Calls(),
            start(table),
            first(11),
            eos=EOS,
            max_length=limits,
            banned=(5,),
            count=2,
            generator=seeded(0),
            **settings,
        )
        for n in range(2):
            assert torch.equal(got.tokens[:, n], want.tokens[:, 0])
            assert torch.equal(got.lengths[:, n], want.lengths[:, 0])
            torch.testing.assert_close(got.logp[:, n], want.logp[:, 0])


def test_a_uniform_number_is_inverted_by_hand() -> None:
    prob = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]], dtype=torch.float64)
    almost = 1 - 2.0**-53
    for uniform, token in [(0.0, 1), (0.25, 1), (0.4999, 1), (0.5, 3), (0.75, 3), (almost, 3)]:
        assert invert(prob, torch.tensor([[uniform]], dtype=torch.float64)).tolist() == [token]


def test_what_cannot_be_drawn_is_refused() -> None:
    table = random_table(2, 3, 4, seed=1)
    arguments = {"eos": EOS, "max_length": 3, "generator": seeded(1)}
    with pytest.raises(ConfigError, match="count: "):
        sample(Calls(), start(table), first(2), count=0, **arguments)
    with pytest.raises(ConfigError, match="search, source 0: every token has probability zero"):
        sample(Calls(), start(table), first(2), banned=(0, 1, 2, 3), **arguments)
    table[1, 1] = torch.nan
    with pytest.raises(ConfigError, match=r"search step 2, row \d: a log-probability is NaN"):
        sample(Calls(), start(table), first(2), banned=(EOS,), **arguments)
