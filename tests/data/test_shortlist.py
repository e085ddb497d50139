"""IBM model 1 and the shortlists made from it."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from weft.data import shortlist
from weft.data.shortlist import Shortlist, probabilities


class Listed(list[tuple[np.ndarray, np.ndarray]]):
    """Pairs in memory."""

    @property
    def lengths(self) -> list[np.ndarray]:
        return [np.array([[len(source), len(target)] for source, target in self]).reshape(-1, 2)]


def corpus(rows: int, seed: int = 3) -> Listed:
    """Sources of tokens 4 to 10; token s becomes 23 - s, and 5 is everywhere in the targets."""
    chance = np.random.default_rng(seed)
    sources = [chance.integers(4, 11, chance.integers(1, 7)) for _ in range(rows)]
    return Listed((source, chance.permutation(np.append(23 - source, 5))) for source in sources)


def by_hand(pairs: Listed, num_source: int, num_target: int, rounds: int) -> np.ndarray:
    """Brown et al. 1993, eq. 17 and 14, with loops; row num_source is the empty word."""
    prob = np.ones((num_source + 1, num_target))
    for _ in range(rounds):
        counts = np.zeros_like(prob)
        for source, target in pairs:
            for word in target:
                every = [*source, num_source]
                total = sum(prob[one, word] for one in every)
                for one in every:
                    counts[one, word] += prob[one, word] / total
        prob = counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
    return prob


@pytest.mark.parametrize("chunk", [7, 2_000_000])
def test_the_probabilities_are_those_of_the_equations(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(shortlist, "CHUNK", chunk)
    pairs, nothing = corpus(29), np.array([], np.int64)
    pairs += [(np.array([0]), np.array([0]))]
    true = by_hand(pairs, 11, 23, shortlist.ROUNDS)
    pairs += [(nothing, np.array([4])), (np.array([4]), nothing)]
    found = np.zeros((11, 23))
    source, target, prob = probabilities(pairs, 11, 23)
    found[source, target] = prob
    np.testing.assert_allclose(found, true[:11], rtol=1e-10)


def test_of_many_pairs_some_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = corpus(300)
    monkeypatch.setattr(shortlist, "LINKS", sum((len(s) + 1) * len(t) for s, t in pairs) // 2)
    half = Listed(pairs[::2])
    monkeypatch.setattr(shortlist, "LINKS", shortlist.LINKS + 1000)
    for mine, true in zip(probabilities(pairs, 11, 23), probabilities(half, 11, 23), strict=True):
        np.testing.assert_array_equal(mine, true)


@pytest.mark.parametrize("shared", [False, True])
def test_each_token_has_its_translation_and_the_most_frequent_are_kept(shared: bool) -> None:
    short = Shortlist.learn(corpus(200), 23, 23, shared=shared)
    for token in range(4, 11):
        kept = short.tokens([token], 1 + shared, [0])
        assert {0, 5, 23 - token} <= set(kept.tolist()) and (token in kept) >= shared
        assert len(kept) <= 2 * (1 + shared) + 1
    assert sorted(short.frequent.tolist()) == list(range(23)) and short.frequent[0] == 5
    assert short.tokens([22, 40], 0, [3, 1]).tolist() == [1, 3]
    one, two = short.tokens([4], 2, []), short.tokens([9], 2, [])
    assert short.tokens([4, 9, 4], 2, []).tolist() == sorted({*one.tolist(), *two.tolist()})


def test_a_list_of_every_token_keeps_all() -> None:
    short = Shortlist.learn(corpus(50), 11, 23, shared=False)
    assert short.tokens([4], 23, []).tolist() == list(range(23))


def test_a_file_is_read_only_for_the_vocabularies_it_was_made_for(tmp_path: Path) -> None:
    short, path = Shortlist.learn(corpus(50), 11, 23, shared=False), tmp_path / "shortlist.json"
    assert Shortlist.open(path, "key", 11, 23) is None
    short.save(path, "key")
    found = Shortlist.open(path, "key", 11, 23)
    assert found is not None
    for mine, true in zip(found, short, strict=True):
        np.testing.assert_array_equal(mine, true)
    for key, sizes in product(["key", "other"], [(11, 23), (11, 24), (10, 23)]):
        assert (Shortlist.open(path, key, *sizes) is None) == ((key, sizes) != ("key", (11, 23)))
    short._replace(partners=short.partners + 23).save(path, "key")
    assert Shortlist.open(path, "key", 11, 23) is None
    path.write_bytes(path.read_bytes()[:100])
    assert Shortlist.open(path, "key", 11, 23) is None
