"""ROUGE by manual calculation, and by enumerating all subsequences."""

import itertools

import pytest

from weft.metrics.rouge_n import Rouge

SAID = "The cat, the cat sat!"
KNOWN = "the cat sat on the mat"


@pytest.mark.parametrize(
    ("kind", "common", "ours", "theirs"),
    [("1", 4, 5, 6), ("2", 2, 4, 5), ("L", 3, 5, 6)],  # the cat the sat; the-cat cat-sat; the cat sat
)
def test_rouge_by_hand(kind: str, common: int, ours: int, theirs: int) -> None:
    score = Rouge(kind=kind).score([SAID], [KNOWN])
    assert score.value == pytest.approx(100 * 2 * common / (ours + theirs))
    assert f"kind:{kind}" in score.signature and score.size == 1


def test_the_longest_common_subsequence_is_the_longest_of_all() -> None:
    def subsequences(words: tuple[str, ...]) -> set[tuple[str, ...]]:
        keeps = itertools.product((False, True), repeat=len(words))
        return {tuple(itertools.compress(words, keep)) for keep in keeps}

    texts = [text for length in (1, 3) for text in itertools.product("ab", repeat=length)]
    for said, known in itertools.product(texts, texts):
        longest = max(map(len, subsequences(said) & subsequences(known)))
        want = 100 * 2 * longest / (len(said) + len(known))
        assert Rouge(kind="L").score([" ".join(said)], [" ".join(known)]).value == pytest.approx(want)


def test_an_output_without_words_scores_nothing() -> None:
    assert Rouge(kind="2").score(["", "..."], ["one word", "two"]).value == 0
