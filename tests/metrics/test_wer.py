"""Error rates count the fewest edits: checked by enumerating all alignments of short texts."""

import functools
import itertools

import pytest

from weft.metrics.wer import Cer, Wer, edits


def ways(reference: tuple[str, ...], said: tuple[str, ...]) -> set[tuple[int, int, int]]:
    """Substitutions, deletions and insertions of every possible alignment."""

    @functools.cache
    def rest(i: int, j: int) -> frozenset[tuple[int, int, int]]:
        if i == len(reference) and j == len(said):
            return frozenset({(0, 0, 0)})
        found = set()
        if i < len(reference):
            found |= {(s, d + 1, n) for s, d, n in rest(i + 1, j)}
        if j < len(said):
            found |= {(s, d, n + 1) for s, d, n in rest(i, j + 1)}
        if i < len(reference) and j < len(said):
            wrong = reference[i] != said[j]
            found |= {(s + wrong, d, n) for s, d, n in rest(i + 1, j + 1)}
        return frozenset(found)

    return set(rest(0, 0))


def test_edits_are_the_fewest_of_all_alignments() -> None:
    texts = [text for length in range(4) for text in itertools.product("ab", repeat=length)]
    for reference, said in itertools.product(texts, texts):
        every = ways(reference, said)
        found = edits(reference, said)
        assert tuple(found) in every
        assert sum(found) == min(map(sum, every))
        assert found.substitutions == max(way[0] for way in every if sum(way) == sum(found))


@pytest.mark.parametrize(
    ("said", "reference", "wer"),
    [("one two", "one two", 0.0), ("", "one two", 100.0), ("a b c d", "a", 300.0), ("a x", "a b c d", 75.0)],
)
def test_wer_by_hand(said: str, reference: str, wer: float) -> None:
    assert Wer().score([said], [reference]).value == pytest.approx(wer)


def test_cer_by_hand() -> None:
    assert Cer().score(["kitten  x"], ["sitting x"]).value == pytest.approx(100 * 3 / 9)
    assert str(Cer().score(["ab"], ["abcd"])) == (
        "CER 50.00 (percent|unit:character|case:mixed|punctuation:kept|n:1)"
    )
