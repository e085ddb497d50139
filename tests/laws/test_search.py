"""Law 8: a beam of 1 is greedy; a beam of V^T is exhaustive; replaying a trace gives the n best.

Also: the result for a source does not depend on its batch.
"""

import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from tests.laws import members
from tests.laws.members import CLASSES, DECODERS, ENCODERS, READ, WRITE, Make, ready
from tests.search.steps import (
    Calls,
    as_found,
    enumerate_all,
    first,
    gru_step,
    plain_beam,
    random_table,
    same,
    start,
    tied_table,
)
from weft import tree
from weft.models import Generator
from weft.nn.heads.categorical import Categorical
from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import Hypotheses
from weft.search.trace import Trace

kinds = st.sampled_from(["length", "gnmt"])
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.0])


@given(
    seed=st.integers(0, 9999),
    vocabulary=st.integers(2, 70),
    sources=st.integers(1, 11),
    limit=st.integers(1, 7),
    alpha=alphas,
    tied=st.booleans(),
    each=st.booleans(),
)
def test_beam_of_one_is_greedy(
    seed: int, vocabulary: int, sources: int, limit: int, alpha: float, tied: bool, each: bool
) -> None:
    table = (tied_table if tied else random_table)(sources, limit, vocabulary, seed)
    limits = torch.arange(sources) % limit + 1 if each else limit
    eos = seed % vocabulary
    one = greedy_search(Calls(), start(table), first(sources), eos=eos, max_length=limits)
    other = beam_search(
        Calls(), start(table), first(sources), eos=eos, max_length=limits, width=1, length_penalty=alpha
    )
    assert torch.equal(one.tokens, other.tokens)
    assert torch.equal(one.lengths, other.lengths)
    assert torch.equal(one.logp, other.logp)


@given(
    seed=st.integers(0, 9999),
    shape=st.sampled_from([(1, 3), (2, 1), (2, 5), (3, 1), (3, 4), (4, 3), (5, 2), (67, 1)]),
    alpha=alphas,
    kind=kinds,
    patience=st.sampled_from([1.0, math.inf]),
)
@example(seed=0, shape=(2, 5), alpha=0.0, kind="length", patience=1.0)
def test_a_beam_as_wide_as_everything_is_brute_force(
    seed: int, shape: tuple[int, int], alpha: float, kind: str, patience: float
) -> None:
    vocabulary, limit = shape
    table = random_table(3, limit, vocabulary, seed)
    limits = [limit, 1, max(1, limit - 1)]
    width, eos = vocabulary**limit, vocabulary - 1
    found = beam_search(
        Calls(),
        start(table),
        first(3),
        eos=eos,
        max_length=torch.tensor(limits),
        width=width,
        nbest=min(width, 7),
        length_penalty=alpha,
        normalisation=kind,
        patience=patience,
    )
    for source, own in enumerate(limits):
        every = enumerate_all(table, source, eos=eos, limit=own, alpha=alpha, kind=kind)
        same(as_found(found, source), every[: min(width, 7)])


@given(
    seed=st.integers(0, 9999),
    vocabulary=st.integers(2, 9),
    limit=st.integers(1, 7),
    width=st.integers(1, 6),
    alpha=alphas,
    kind=kinds,
    patience=st.sampled_from([0.3, 1.0, 2.0, math.inf]),
    tied=st.booleans(),
    data=st.data(),
)
def test_replaying_a_trace_gives_the_n_best_and_so_does_a_plain_search(
    seed: int,
    vocabulary: int,
    limit: int,
    width: int,
    alpha: float,
    kind: str,
    patience: float,
    tied: bool,
    data,
) -> None:
    sources, eos = 19, 1  # many, so that finished sources wait for others in the batch
    nbest = data.draw(st.integers(1, width))
    table = (tied_table if tied else random_table)(sources, limit, vocabulary, seed)
    limits = [1 + seed % limit, 1 + (seed + 1) % limit] + [limit] * (sources - 2)
    trace = Trace()
    found = beam_search(
        Calls(),
        start(table),
        first(sources),
        eos=eos,
        max_length=torch.tensor(limits),
        width=width,
        nbest=nbest,
        length_penalty=alpha,
        normalisation=kind,
        patience=patience,
        trace=trace,
    )
    enough = max(nbest, math.ceil(patience * width)) if patience < math.inf else math.inf
    for source, hypotheses in enumerate(trace.replay()):
        got = [(one.tokens, one.logp, one.score) for one in as_found(found, source)]
        assert got == [tuple(one) for one in hypotheses]  # bit-identical: both are float64
    for source, own in enumerate(limits):
        plain = plain_beam(
            table, source, eos=eos, limit=own, width=width, nbest=nbest, alpha=alpha, kind=kind, enough=enough
        )
        same(as_found(found, source), plain)


@pytest.mark.parametrize("tied", [False, True])
def test_a_source_alone_is_the_source_in_a_batch(tied: bool) -> None:
    sources, limit, vocabulary = 31, 11, 131
    table = (
        tied_table(sources, limit, 17, 5)
        if tied
        else random_table(sources, limit, vocabulary, 5, sharp=3.0, dtype=torch.float32)
    )
    limits = torch.arange(sources) % limit + 1
    order = torch.randperm(sources, generator=torch.Generator().manual_seed(1))

    def search(rows: Tensor) -> Hypotheses:
        return beam_search(
            Calls(), start(table[rows]), first(len(rows)), eos=3, max_length=limits[rows], width=5, nbest=3
        )

    whole = search(torch.arange(sources))
    shuffled = search(order)
    greedily = greedy_search(Calls(), start(table), first(sources), eos=3, max_length=limits)
    for place, source in enumerate(order.tolist()):
        alone = search(torch.tensor([source]))
        assert as_found(shuffled, place) == as_found(whole, source) == as_found(alone, 0)
        one = greedy_search(Calls(), start(table[[source]]), first(1), eos=3, max_length=limits[[source]])
        assert as_found(one, 0) == as_found(greedily, source)


def test_a_recurrent_model_alone_and_in_a_batch() -> None:
    """Matrix products may differ in the last bit with the number of rows; tokens must not."""
    step, sources = gru_step(2, vocabulary=71)
    begin = torch.full((64,), 2)
    whole = beam_search(step, sources, begin, eos=3, max_length=13, width=5, nbest=5)
    for row in range(64):
        alone = beam_search(step, sources[row : row + 1], begin[:1], eos=3, max_length=13, width=5, nbest=5)
        same(as_found(alone, 0), as_found(whole, row), 1e-10)


def writer(make: Make) -> Generator:
    """A generator with this decoder; its source needs no embedding."""

    def build() -> Generator:
        encoder = ENCODERS["recurrent((13,5),True)"](READ)
        decoder = make(WRITE, encoder)
        if decoder.copies:
            pytest.skip("a pointer reads words: tests/oracles/test_pointer.py searches with one")
        embed = torch.nn.Embedding(CLASSES, WRITE)
        head = Categorical(decoder.size, CLASSES)
        return Generator(embed, decoder, head, encoder=encoder, source_embed=torch.nn.Identity())

    return ready(build)


@members.cases(DECODERS)
def test_every_decoder_is_searched_alike(make: Make) -> None:
    """A beam of 1 is greedy; a source alone gives the result it has in a batch; scores are the model's."""
    model = writer(make)
    x, mask = members.source()
    begin = torch.full((len(x),), 2)
    limits = torch.tensor([7, 3, 5, 7, 1])
    with torch.no_grad():
        state = model.start(x, mask)
    one = greedy_search(model.step, state, begin, eos=3, max_length=limits)
    other = beam_search(model.step, state, begin, eos=3, max_length=limits, width=1)
    assert torch.equal(one.tokens, other.tokens)
    found = beam_search(
        model.step, state, begin, eos=3, max_length=limits, width=4, nbest=3, length_penalty=0.6
    )
    for row in range(len(x)):
        alone = beam_search(
            model.step,
            tree.take(state, torch.tensor([row])),
            begin[:1],
            eos=3,
            max_length=limits[row],
            width=4,
            nbest=3,
            length_penalty=0.6,
        )
        same(as_found(alone, 0), as_found(found, row), 1e-10)
    for n in range(3):
        tokens = torch.cat([begin[:, None], found.tokens[:, n]], 1)
        with torch.no_grad():
            h, _ = model.decoder(model.embed(tokens[:, :-1]), state)
            logp = model.head(h).gather(2, tokens[:, 1:, None])[..., 0]
        written = torch.arange(logp.shape[1]) < found.lengths[:, n : n + 1]
        torch.testing.assert_close((logp * written).sum(1), found.logp[:, n], rtol=1e-10, atol=1e-10)
