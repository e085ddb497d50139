"""Rules, required words, diverse groups and ensembles find what enumeration and a plain search find."""

import itertools
import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from tests.search.steps import (
    Calls,
    Found,
    as_found,
    enumerate_all,
    first,
    next_logp,
    random_table,
    same,
    start,
)
from tests.slow import leading
from weft.errors import ConfigError
from weft.search.beam import beam_search
from weft.search.diverse import diverse_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import norm
from weft.search.required import required
from weft.search.sampling import sample
from weft.search.step import Rule, ensemble, least_length, no_repeat, prefix, ruled

SOURCES, LIMIT, VOCABULARY, EOS = 3, 5, 3, 2
WIDE = VOCABULARY**LIMIT


def test_free_tokens_of_a_prefix_cost_nothing() -> None:
    logp = torch.tensor([[0.5, 0.25, 0.25]]).log()
    rule, none = prefix([2, 1], free=1), torch.zeros(1, 0, dtype=torch.int64)
    forced, counted = rule(logp, none), rule(logp, torch.tensor([[2]]))
    assert forced.tolist() == [[-float("inf"), -float("inf"), 0.0]]
    assert counted.exp().tolist() == [[0.0, 0.25, 0.0]]
    assert torch.equal(rule(logp, torch.tensor([[2, 1]])), logp)


def body(found: Found) -> list[int]:
    return [token for token in found.tokens if token != EOS]


def repeats(tokens: Sequence[int], size: int) -> bool:
    grams = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
    return len(set(grams)) < len(grams)


RULES: dict[str, tuple[Rule, Callable[[Found], bool]]] = {
    "prefix": (prefix([1, 0]), lambda f: f.tokens[:2] == [1, 0]),
    "least": (least_length(3, EOS), lambda f: len(body(f)) >= 3),
    "unigrams": (no_repeat(1), lambda f: not repeats(f.tokens, 1)),
    "bigrams": (no_repeat(2), lambda f: not repeats(f.tokens, 2)),
    "trigrams": (no_repeat(3), lambda f: not repeats(f.tokens, 3)),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", [1, 5])
def test_under_a_rule_a_wide_beam_is_brute_force_over_what_keeps_it(name: str, seed: int) -> None:
    rule, keeps = RULES[name]
    table = random_table(SOURCES, LIMIT, VOCABULARY, seed)
    step, state = ruled(Calls(), start(table), [rule])
    found = beam_search(step, state, first(SOURCES), eos=EOS, max_length=LIMIT, width=WIDE, nbest=5)
    for source in range(SOURCES):
        every = enumerate_all(table, source, eos=EOS, limit=LIMIT, alpha=1.0, kind="length")
        same(as_found(found, source), [one for one in every if keeps(one)][:5])


@pytest.mark.parametrize("name", RULES)
def test_every_search_keeps_a_rule_also_when_hypotheses_change_places(name: str) -> None:
    rule, keeps = RULES[name]
    table = random_table(7, 11, 5, seed=3)
    narrow = {"eos": EOS, "max_length": 11}
    begin = first(7)
    for found in (
        beam_search(*ruled(Calls(), start(table), [rule]), begin, width=4, nbest=3, **narrow),
        greedy_search(*ruled(Calls(), start(table), [rule]), begin, **narrow),
        sample(*ruled(Calls(), start(table), [rule]), begin, count=3, generator=torch.Generator(), **narrow),
        diverse_search(*ruled(Calls(), start(table), [rule]), begin, width=4, groups=2, nbest=4, **narrow),
        required(*ruled(Calls(), start(table), [rule]), begin, width=3, words=[[1, 0], [0]], **narrow)
        if name in ("prefix", "least")
        else None,
    ):
        for source in range(7 if found else 0):
            got = as_found(found, source)
            assert got and all(keeps(one) for one in got)


def holds(tokens: Sequence[int], words: Sequence[Sequence[int]]) -> bool:
    """Whether every word has a place of its own."""
    if not words:
        return True
    word, rest = list(words[0]), words[1:]
    return any(
        list(tokens[i : i + len(word)]) == word
        and holds([*tokens[:i], *[-9] * len(word), *tokens[i + len(word) :]], rest)
        for i in range(len(tokens))
    )


@pytest.mark.parametrize(
    "words", [[[1]], [[0, 1]], [[1], [0]], [[1, 1], [0]], [[0], [0]], [[1, 0], [1]]], ids=str
)
@pytest.mark.parametrize("seed", leading([2, 3]))
def test_a_wide_grid_is_brute_force_over_what_holds_the_words(words: list[list[int]], seed: int) -> None:
    table = random_table(SOURCES, LIMIT, VOCABULARY, seed)
    limits = torch.tensor([LIMIT, 1 + sum(map(len, words)), LIMIT - 1])
    found = required(
        Calls(),
        start(table),
        first(SOURCES),
        words=words,
        eos=EOS,
        max_length=limits,
        width=WIDE,
        nbest=5,
        length_penalty=0.6,
    )
    for source, limit in enumerate(limits.tolist()):
        every = enumerate_all(table, source, eos=EOS, limit=limit, alpha=0.6, kind="length")
        same(as_found(found, source), [one for one in every if holds(body(one), words)][:5])


def test_a_narrow_grid_holds_the_words_wherever_the_source_stands_in_the_batch() -> None:
    table = random_table(13, 11, 17, seed=8)
    words = [[4, 7], [9]]
    settings = {"words": words, "eos": 3, "max_length": 11, "width": 4, "nbest": 4}
    found = required(Calls(), start(table), first(13), **settings)
    for source in range(13):
        got = as_found(found, source)
        assert got and all(holds(one.tokens, words) for one in got)
        alone = required(Calls(), start(table[[source]]), first(1), **settings)
        assert as_found(alone, 0) == got


def plain_diverse(
    table: Tensor, source: int, *, limit: int, groups: int, size: int, strength: float
) -> list[Found]:
    """Diverse beam search of one source with lists."""
    beams: list[list[tuple[list[int], float]]] = [[([], 0.0)] for _ in range(groups)]
    ends: list[list[Found]] = [[] for _ in range(groups)]
    for time in range(1, limit + 1):
        chosen = [0] * table.shape[3]
        for group in range(groups):
            grown = [
                (total + logp - strength * chosen[token], parent, token, total + logp)
                for parent, (tokens, total) in enumerate(beams[group])
                for token, logp in enumerate(next_logp(table, source, tokens))
            ]
            grown.sort(key=lambda one: (-one[0], one[1], one[2]))
            for _, parent, token, real in grown[:size]:
                if token == EOS:
                    tokens = [*beams[group][parent][0], EOS]
                    ends[group].append(Found(tokens, time, real, real / norm(time, 1.0)))
            going = [one for one in grown if one[2] != EOS][:size]
            for one in going:
                chosen[one[2]] += 1
            beams[group] = [([*beams[group][parent][0], token], real) for _, parent, token, real in going]
            best = max((real for _, real in beams[group]), default=-math.inf) / norm(time, 1.0)
            if len(ends[group]) >= size and best <= max(one.score for one in ends[group]):
                beams[group] = []
        if not any(beams):
            break
    cut = [Found(t, limit, total, total / limit) for own in beams for t, total in own if len(t) == limit]
    every = [one for own in ends for one in sorted(own, key=lambda f: -f.score)[:size]]
    return sorted(every, key=lambda f: -f.score) + sorted(cut, key=lambda f: -f.score)


@pytest.mark.parametrize("strength", [0.0, 0.4, 3.0])
@pytest.mark.parametrize(("groups", "size"), [(1, 3), (2, 2), (3, 1), (2, 3)])
def test_diverse_search_is_the_plain_one(strength: float, groups: int, size: int) -> None:
    sources, limit = 7, 7
    table = random_table(sources, limit, 11, seed=groups * 7 + size)
    found = diverse_search(
        Calls(),
        start(table),
        first(sources),
        eos=EOS,
        max_length=limit,
        width=groups * size,
        groups=groups,
        strength=strength,
        nbest=1,
    )
    for source in range(sources):
        plain = plain_diverse(table, source, limit=limit, groups=groups, size=size, strength=strength)
        same(as_found(found, source), plain[:1])


def test_one_group_is_a_beam_and_groups_that_do_not_care_are_alike() -> None:
    table = random_table(7, 9, 13, seed=4)
    settings = {"eos": EOS, "max_length": 9}
    one = diverse_search(Calls(), start(table), first(7), width=4, groups=1, nbest=4, **settings)
    two = beam_search(Calls(), start(table), first(7), width=4, nbest=4, **settings)
    both = diverse_search(
        Calls(), start(table), first(7), width=4, groups=2, strength=0.0, nbest=4, **settings
    )
    half = beam_search(Calls(), start(table), first(7), width=2, nbest=2, **settings)
    apart = diverse_search(
        Calls(), start(table), first(7), width=4, groups=2, strength=9.0, nbest=4, **settings
    )
    for source in range(7):
        same(as_found(one, source), as_found(two, source))
        best = as_found(half, source)
        assert all(one in as_found(both, source) for one in best)
        for found in (as_found(both, source), as_found(apart, source)):
            assert len({tuple(one.tokens) for one in found}) == 4


def sure_table(sources: int, longest: int, vocabulary: int, seed: int) -> Tensor:
    """One continuation is all but certain everywhere: a weak penalty moves no group away from it."""
    return random_table(sources, longest, vocabulary, seed, sharp=9.0)


@pytest.mark.parametrize(("groups", "size"), [(4, 1), (4, 2), (2, 3)])
def test_hypotheses_of_a_confident_model_are_different_and_those_of_the_groups_stay(
    groups: int, size: int
) -> None:
    table, narrow = (
        sure_table(7, 5, 11, seed=5),
        {"eos": EOS, "max_length": torch.tensor([5, 4, 3, 5, 1, 2, 5])},
    )
    settings = {**narrow, "width": groups * size, "groups": groups, "strength": 0.5}
    found = diverse_search(Calls(), start(table), first(7), nbest=4, **settings)
    plain = beam_search(Calls(), start(table), first(7), nbest=4, width=groups * size, **narrow)
    for source, limit in enumerate(narrow["max_length"].tolist()):
        got = as_found(found, source)
        assert len({tuple(one.tokens) for one in got}) == len(got) == 4
        assert all(len(one.tokens) <= limit for one in got)
        alone = diverse_search(
            Calls(), start(table[[source]]), first(1), nbest=4, **{**settings, "max_length": limit}
        )
        same(as_found(alone, 0), got)
        own = plain_diverse(table, source, limit=limit, groups=groups, size=size, strength=0.5)
        different = {tuple(one.tokens): one for one in own}
        for one in [one for one in different.values() if one.tokens[-1] == EOS][:4]:
            assert tuple(one.tokens) in {tuple(other.tokens) for other in got}
        filled = [one for one in got if tuple(one.tokens) not in different]
        assert all(one in as_found(plain, source) for one in filled)
        ended = [one for one in got if one.tokens[-1] == EOS]
        assert got[: len(ended)] == sorted(ended, key=lambda one: -one.score)


def test_where_fewer_different_hypotheses_exist_the_rest_are_absent() -> None:
    table = random_table(3, 1, 3, seed=2)
    found = diverse_search(Calls(), start(table), first(3), eos=EOS, max_length=1, width=4, groups=4, nbest=4)
    assert [len(as_found(found, source)) for source in range(3)] == [3, 3, 3]
    assert (found.score[:, 3] == -math.inf).all() and (found.lengths[:, 3] == 0).all()


@pytest.mark.parametrize("mean", ["probability", "log"])
def test_an_ensemble_is_brute_force_over_the_mean(mean: str) -> None:
    tables = [random_table(SOURCES, 4, VOCABULARY, seed) for seed in (1, 2)]
    step = ensemble([Calls(), Calls()], mean)
    state = tuple(start(table) for table in tables)
    found = beam_search(
        step, state, first(SOURCES), eos=EOS, max_length=4, width=WIDE, nbest=3, length_penalty=0.0
    )
    for source in range(SOURCES):
        every = []
        for length in range(1, 5):
            for tokens in itertools.product(range(VOCABULARY), repeat=length):
                if EOS in tokens[:-1] or (length < 4 and tokens[-1] != EOS):
                    continue
                total = 0.0
                for t in range(length):
                    a, b = (next_logp(table, source, tokens[:t])[tokens[t]] for table in tables)
                    total += (a + b) / 2 if mean == "log" else math.log((math.exp(a) + math.exp(b)) / 2)
                every.append(Found(list(tokens), length, total, total))
        every.sort(key=lambda f: (f.tokens[-1] != EOS, -f.score))
        same(as_found(found, source), every[:3], 1e-10)


def test_an_ensemble_of_one_model_twice_is_that_model() -> None:
    table = random_table(5, 7, 11, seed=6)
    step, state = ensemble([Calls(), Calls()]), (start(table), start(table))
    two = beam_search(step, state, first(5), eos=EOS, max_length=7, width=3, nbest=3)
    one = beam_search(Calls(), start(table), first(5), eos=EOS, max_length=7, width=3, nbest=3)
    for source in range(5):
        same(as_found(two, source), as_found(one, source), 1e-10)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda go: diverse_search(*go, width=5, groups=2, eos=2, max_length=4), "diverse: "),
        (
            lambda go: required(*go, words=[[1, 1], [0, 1]], width=2, eos=2, max_length=4),
            "they take 4 tokens",
        ),
        (lambda go: required(*go, words=[[]], width=2, eos=2, max_length=4), "1 empty"),
        (lambda go: no_repeat(0), "no_repeat_ngram: .*0"),
        (lambda go: ensemble([]), "ensemble: "),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        call((Calls(), start(random_table(3, 4, 3, seed=1)), first(3)))
