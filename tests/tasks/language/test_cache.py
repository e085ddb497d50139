"""The neural cache: its formula, token by token; the same in scoring, in a search and in `expected`."""

import math

import numpy as np
import pytest
import torch

from tests.tasks.language.test_scoring import SIZE, model, stream, walked
from weft.tasks.language.data import Stream
from weft.tasks.language.decoding import MixedModel, StepReader, expected
from weft.tasks.language.scoring import (
    SHARPNESS,
    Cache,
    MixtureParts,
    MixtureWeights,
    cached_logp,
    counted,
    halves,
    mixed,
    ngram_logp,
    token_logp,
)
from weft.text.vocabulary import EOS


def features(tokens: list[int]) -> np.ndarray:
    """[P, D] after each token, a step at a time."""
    net = model()
    state, found = net.start(None, torch.ones(1, 1, dtype=torch.bool)), []
    for token in tokens:
        h, state = net.decoder(net.embed(torch.tensor([[token]])), state)
        found.append(h[0, 0].detach().numpy())
    return np.array(found)


def by_hand(tokens: list[int], size: int, sharpness: float) -> list[float]:
    """p_cache of each token after the first; NaN where nothing was seen before."""
    h, found = features(tokens[:-1]), [math.nan]
    for t in range(1, len(tokens) - 1):
        seen = range(max(0, t - size), t)
        weights = [math.exp(sharpness * float(h[t] @ h[i]) / math.sqrt(h.shape[1])) for i in seen]
        same = [w for w, i in zip(weights, seen, strict=True) if tokens[i + 1] == tokens[t + 1]]
        found.append(sum(same) / sum(weights))
    return found


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_the_cache_is_its_formula(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.tasks.language.scoring.BLOCK", 11)
    text = stream()
    both = cached_logp(model(), text, size, (0.0, 2.0))
    np.testing.assert_allclose(both.neural, token_logp(model(), text, "stream", length=5), atol=1e-10)
    for sharpness, got in zip((0.0, 2.0), both.cache, strict=True):
        want = by_hand(text.tokens.tolist(), size, sharpness)
        assert got[0] == both.neural[0]
        np.testing.assert_allclose(np.exp(got[1:]), want[1:], atol=1e-10)


@pytest.mark.parametrize("with_ngrams", [True, False])
@pytest.mark.parametrize("size", [2, 5000])
def test_a_search_sees_what_scoring_sees(with_ngrams: bool, size: int) -> None:
    more, row = [5, 8, 9, 5, EOS, 8, EOS], [8, 9]
    text = Stream(np.array([EOS, *row, *more], np.int32), 2, 0, 0)
    made = counted(stream(2), size=SIZE, kind="x", batching="stream", order=3) if with_ngrams else None
    both = cached_logp(model(), text, size)
    parts = MixtureParts(both.neural, None if made is None else ngram_logp(made, text), both.cache)
    want = parts.mixed(MixtureWeights(0.3, 0.2, 4.0))
    reader = StepReader(model(), None, MixedModel(made, 0.3 if with_ngrams else 0.0, Cache(size, 4.0, 0.2)))
    seen = walked(reader, [[EOS, *row], [EOS, 7, 7]], more)
    got = [float(logp[0, token]) for logp, token in zip(seen, more, strict=False)]
    np.testing.assert_allclose(got, want[len(row) :], atol=1e-10)
    np.testing.assert_allclose(np.exp(seen[3].numpy()).sum(1), 1.0, atol=1e-10)
    told = expected(reader, [[EOS, 7, 7], text.tokens.tolist()], 3)[1]
    # Before the first token, scoring gives the n-grams a start, as in training.
    np.testing.assert_allclose([one.logp for one in told][1:], want[1:], atol=1e-10)
    assert all(one.best[0][1] >= one.logp - 1e-12 for one in told)


def test_the_tuned_weights_are_the_best_of_all() -> None:
    chance = np.random.default_rng(7)
    neural, ngram = -chance.exponential(1.1, 101), -chance.exponential(1.2, 101)
    cache = np.where(chance.random((len(SHARPNESS), 101)) < 0.4, -np.inf, -chance.exponential(0.9, 101))
    parts = MixtureParts(neural, ngram, cache)
    grid = np.linspace(0, 1, 41)
    best = max(
        float(parts.mixed(MixtureWeights(one, other, sharpness)).sum())
        for sharpness in SHARPNESS
        for one in grid
        for other in grid
    )
    assert float(parts.mixed(parts.tuned()).sum()) >= best - 1e-6
    given = parts.tuned(0.25)
    along = [float(parts.mixed(MixtureWeights(0.25, one, given.sharpness)).sum()) for one in grid]
    assert given.ngram == 0.25 and float(parts.mixed(given).sum()) >= max(along) - 1e-6
    alone = MixtureParts(neural, None, cache).tuned()
    assert alone.ngram == 0 and alone.cache > 0
    logp, (first, second) = halves(parts)
    assert first == parts.part(slice(50, None)).tuned() and second == parts.part(slice(50)).tuned()
    np.testing.assert_array_equal(logp[:50], parts.part(slice(50)).mixed(first))


def test_without_a_cache_the_mixture_is_as_before() -> None:
    parts = MixtureParts(np.array([-1.0, -2.0]), np.array([-2.0, -1.5]))
    np.testing.assert_array_equal(parts.mixed(MixtureWeights(0.3)), mixed(parts.neural, parts.ngram, 0.3))  # type: ignore[arg-type]
