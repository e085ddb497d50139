"""Whole next words: their probabilities are those of an enumeration."""

from itertools import product
from math import exp

import pytest
import torch
from torch import Tensor

from weft.search.words import WordEdges, next_words

EOS, A, B, MORE, REST = range(5)


def bigram() -> Tensor:
    """[V, V] chances of the next token after each token."""
    chances = torch.rand(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    chances[:, MORE] *= 0.2  # so that long words are rare
    return chances / chances.sum(1, keepdim=True)


def enumerated(first: list[int], longest: int) -> dict[tuple[int, ...], float]:
    """The chance of every word of up to `longest` pieces after A, with that of its end."""
    chances = bigram()
    found: dict[tuple[int, ...], float] = {}
    for length in range(longest):
        for start, *rest in product(first, *[(MORE, REST)] * length):
            word = (start, *rest)
            pairs = zip((A, *word), word, strict=False)
            chance = float(torch.stack([chances[pair] for pair in pairs]).prod())
            found[word] = chance * float(chances[word[-1], [EOS, A, B]].sum())
    return found


@pytest.mark.parametrize("inside", [False, True])
def test_words_have_the_chances_of_an_enumeration(inside: bool) -> None:
    def step(token: Tensor, state: None) -> tuple[Tensor, None]:
        return bigram()[token].log(), state

    begins = torch.tensor([False, True, True, False, False])
    edges = WordEdges(begins, torch.zeros(5, dtype=torch.bool))
    found = next_words(step, None, torch.tensor([A]), edges, eos=EOS, count=3, inside=inside)
    every = enumerated([A, B, MORE, REST] if inside else [A, B], longest=8)
    best = sorted(every.items(), key=lambda pair: -pair[1])[:3]
    assert [tuple(one.tokens) for one in found] == [word for word, _ in best]
    assert [exp(one.logp) for one in found] == pytest.approx([chance for _, chance in best])


def test_a_word_also_ends_with_a_piece_that_ends_words() -> None:
    def step(token: Tensor, state: None) -> tuple[Tensor, None]:
        return bigram()[token].log(), state

    none = torch.zeros(5, dtype=torch.bool)
    edges = WordEdges(none, torch.tensor([False, True, True, False, True]))
    found = next_words(step, None, torch.tensor([A]), edges, eos=EOS, count=2, banned=[B], inside=True)
    chances = bigram()[A]
    assert {tuple(one.tokens) for one in found} == {(A,), (REST,)}
    assert [exp(one.logp) for one in found] == pytest.approx(sorted(chances[[A, REST]].tolist())[::-1])


def test_tokens_beyond_the_vocabulary_are_in_no_word() -> None:
    """A model of several languages has their marks there, and a pointer the places of words to copy."""

    def step(token: Tensor, state: None) -> tuple[Tensor, None]:
        return torch.cat([bigram(), torch.full((5, 2), 0.1)], 1)[token].log(), state

    edges = WordEdges(torch.tensor([False, True, True, False, False]), torch.zeros(5, dtype=torch.bool))
    known = next_words(step, None, torch.tensor([A]), edges, eos=EOS, count=9, banned=[6])
    assert known and all(max(one.tokens) < 5 for one in known)
