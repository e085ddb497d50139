"""Law 7 for sampling and for blocked n-grams in compiled code: the tokens and scores of the plain loops."""

from collections import Counter
from typing import Any

import pytest
import torch

from tests.nn.ways import COMPILED
from tests.search.models import EOS, SOURCES, WORDS, found, generator, same
from tests.slow import leading, slow
from weft import native
from weft.errors import ConfigError
from weft.nn.kernels import choice
from weft.search.hypotheses import Hypotheses
from weft.search.step import least_length, no_repeat, prefix

pytestmark = pytest.mark.skipif(
    native.loaded("searching").library is None, reason=native.loaded("searching").reason
)
NARROWED: dict[str, dict[str, Any]] = {
    "all": {},
    "three": {"count": 3},
    "hot": {"temperature": 1.7, "count": 2},
    "cold": {"temperature": 0.3},
    "likeliest": {"top_k": 5, "count": 3},
    "one": {"top_k": 1},
    "more than there are": {"top_k": WORDS + 5},
    "nucleus": {"top_p": 0.8, "count": 3},
    "tiny nucleus": {"top_p": 1e-9},
    "both": {"top_k": 7, "top_p": 0.6, "temperature": 1.3, "count": 2},
    "banned": {"banned": (5, 11, 3), "top_k": 9},
    "limits": {"count": 2, "max_length": torch.tensor([1, 13, 2, 5, 8, 3, 9])},
    "under rules": {"rules": [prefix([9, 30, 4], free=1), least_length(6, EOS), no_repeat(1)], "count": 2},
}


def drawn(kind: str, plain: bool, **how: Any) -> tuple[Hypotheses, float]:
    """Two samples with one generator, joined; and the next number of the generator."""
    chance = torch.Generator().manual_seed(23)
    both = [found(generator(kind), plain=plain, search="sample", generator=chance, **how) for _ in range(2)]
    width = max(one.tokens.shape[2] for one in both)
    tokens = [
        torch.nn.functional.pad(one.tokens, (0, width - one.tokens.shape[2]), value=EOS) for one in both
    ]
    parts = (torch.cat([getattr(one, name) for one in both]) for name in ("lengths", "logp", "score"))
    return Hypotheses(torch.cat(tokens), *parts), float(torch.rand(1, generator=chance))


@pytest.mark.parametrize("way", leading(COMPILED))
@pytest.mark.parametrize(
    ("kind", "narrowed"),
    [
        *(("transformer", narrowed) for narrowed in NARROWED),
        *((kind, "both") for kind in ("hybrid", "recurrent")),
        *slow((kind, other) for kind in ("hybrid", "recurrent") for other in NARROWED if other != "both"),
    ],
)
def test_a_sample_by_compiled_code_is_the_plain_one(
    kind: str, narrowed: str, way: Any, counted: list[bool]
) -> None:
    with choice.use(fused=way):
        mine, next_mine = drawn(kind, False, **NARROWED[narrowed])
    with choice.use(fused="torch"):
        true, next_true = drawn(kind, True, **NARROWED[narrowed])
    same(mine, true)
    assert counted == [True] * 2
    assert next_mine == next_true  # the generator goes on as if the plain loop had drawn


@pytest.mark.parametrize("setting", [{"top_p": 1.5}, {"top_k": -1}, {"temperature": 0.0}], ids=str)
def test_settings_out_of_range_are_refused_as_by_the_plain_loop(setting: dict[str, float]) -> None:
    chance = torch.Generator().manual_seed(3)
    with pytest.raises(ConfigError, match=next(iter(setting))):
        found(generator(), plain=False, search="sample", generator=chance, **setting)


def test_a_source_s_first_tokens_have_the_model_s_probabilities() -> None:
    model, chance = generator(), torch.Generator().manual_seed(3)
    times, drawn_tokens = 50, Counter[int]()
    for _ in range(times):
        one = found(model, plain=False, search="sample", generator=chance, count=64, max_length=1)
        drawn_tokens.update(one.tokens[0, :, 0].tolist())
    best = found(model, plain=False, width=10, nbest=10, max_length=1)
    for token, logp in zip(best.tokens[0, :, 0].tolist(), best.logp[0].tolist(), strict=True):
        prob, number = 2.718281828**logp, 64 * times
        assert abs(drawn_tokens[token] - number * prob) < 5 * (number * prob * (1 - prob)) ** 0.5 + 1


@pytest.mark.parametrize("way", leading(COMPILED))
@pytest.mark.parametrize("size", leading([2, 1, 3]))
@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_no_n_gram_is_repeated_by_compiled_code(kind: str, size: int, way: Any, counted: list[bool]) -> None:
    model = generator(kind)
    model.head.bias.data[EOS] = -20.0  # long texts, which repeat themselves
    rules = [prefix([9, 30, 9], free=1), least_length(6, EOS), no_repeat(size)]
    every: list[dict[str, Any]] = [{"width": 4, "nbest": 3}, {"search": "greedy"}]
    for how in (one | {"rules": given} for one in every for given in (rules[1:], rules[size == 1 :])):
        with choice.use(fused=way):
            mine = found(model, plain=False, max_length=31, **how)
        with choice.use(fused="torch"):
            same(mine, found(model, plain=True, max_length=31, **how))
        for row, length in zip(
            mine.tokens.flatten(0, 1).tolist(), mine.lengths.flatten().tolist(), strict=True
        ):
            grams = [tuple(row[at : at + size]) for at in range(length - size + 1)]
            assert len(set(grams)) == len(grams)
    assert counted == [True] * 4
    free = found(model, plain=False, width=4, max_length=31)
    assert any(len(set(row)) < len(row) for row in free.tokens[:, 0].tolist())  # blocking has something to do
    assert len(mine.tokens) == SOURCES


def test_a_prefix_that_repeats_itself_is_refused_as_by_the_plain_loop() -> None:
    rules = [prefix([9, 9]), no_repeat(1)]
    for how in ({"search": "greedy"}, {"search": "sample", "generator": torch.Generator()}, {"width": 2}):
        with pytest.raises(ConfigError, match="every token has probability zero"):
            found(generator(), plain=False, rules=rules, **how)


def test_tokens_may_be_banned_many_times(counted: list[bool]) -> None:
    model = generator()
    model.head.bias.data[EOS] = -20.0
    how: dict[str, Any] = {"max_length": 29, "rules": [no_repeat(1)], "search": "greedy"}
    mine = found(model, plain=False, banned=(5,) * 1_000_000, **how)  # was written past the end of a buffer
    same(mine, found(model, plain=True, banned=(5,), **how))
    assert counted == [True]
