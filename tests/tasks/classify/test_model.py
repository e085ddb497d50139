"""The items of a bag: runs of words and of letters, how many are kept, and what each counts."""

from collections import Counter
from math import log, sqrt

import numpy as np
import pytest

from weft.errors import ConfigError
from weft.tasks.classify.model import Bag
from weft.tasks.classify.reader import BagItems

TEXTS = ["cat cats", "a cat", "dog", "a cat cat"]
WORDS = [text.split() for text in TEXTS]
ROWS = [[{"cat": 4, "cats": 5, "a": 6, "dog": 7}[word] for word in words] for words in WORDS]


def learn(**settings: object) -> BagItems:
    return BagItems.learn(Bag(**settings), ROWS, WORDS)  # type: ignore[arg-type]


def spelled(items: BagItems, tokens: list[int], words: list[str]) -> Counter[str]:
    """What is counted of a text, letters alone."""
    counts = items.counted(tokens, words)
    letters = {items.kept[n - 1][0]: count for n, count in counts.items()}
    return Counter({gram: count for gram, count in letters.items() if isinstance(gram, str)})


def test_letters_are_those_of_char_wb() -> None:
    """scikit-learn's CountVectorizer(analyzer="char_wb", ngram_range=(2, 4)), spaces for < and >."""
    items = learn(letters=(2, 4))
    want = [" c", "ca", "at", "t ", " ca", "cat", "at ", " cat", "cat "]
    shown = [gram.replace("<", " ").replace(">", " ") for gram in spelled(items, [4], ["cat"])]
    assert sorted(shown) == sorted(want)
    assert spelled(items, [6, 4, 4], ["a", "cat", "cat"]) == Counter(
        dict.fromkeys(spelled(items, [4], ["cat"]), 2) | {"<a": 1, "a>": 1, "<a>": 1}
    )


def test_an_unknown_word_has_the_letters_that_are_known() -> None:
    found = spelled(learn(letters=(2, 3)), [1], ["catdog"])  # token 1 is unknown
    assert set(found) == {"<c", "<ca", "ca", "cat", "at", "do", "dog", "og", "og>", "g>"}


def test_words_and_letters_have_limits_of_their_own() -> None:
    items = learn(ngrams=1, size=2, letters=(2, 2), letters_size=3)
    assert items.kept == [(4,), (6,), ("<c",), ("ca",), ("at",)]  # cat is in three texts, a in two
    assert items.documents == [3, 2, 3, 3, 3] and items.total == 4
    assert learn(ngrams=1, size=2).kept == [(4,), (6,)]
    assert learn(ngrams=1, letters=(2, 2), min_count=3).kept == [(4,), ("<c",), ("ca",), ("at",), ("t>",)]


def test_tfidf_is_its_formula() -> None:
    items = learn(ngrams=1, weight="tfidf")
    counts = items.counted([6, 4, 4], [])
    documents = {4: 3, 5: 1, 6: 2, 7: 1}  # texts that hold cat, cats, a, dog
    rare = {token: log((1 + 4) / (1 + n)) + 1 for token, n in documents.items()}
    want = {4: (1 + log(2)) * rare[4], 6: rare[6]}
    length = sqrt(sum(value**2 for value in want.values()))
    got = {items.kept[n - 1][0]: value for n, value in zip(counts, items.weighed(counts), strict=True)}
    assert set(got) == set(want)
    for token, value in want.items():
        assert got[token] == pytest.approx(value / length, rel=1e-6)
    both = learn(ngrams=1, letters=(2, 3), weight="tfidf")  # letters change nothing for words
    counts = both.counted([6, 4, 4], ["a", "cat", "cat"])
    values = both.weighed(counts)
    words = np.array([not isinstance(both.kept[n - 1][0], str) for n in counts])
    assert sorted(values[words]) == pytest.approx(sorted(got.values()))
    assert float(np.square(values[~words]).sum()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("weight", "want"), [("presence", [1, 1]), ("count", [1, 2]), ("frequency", [1 / 3, 2 / 3])]
)
def test_the_other_weights(weight: str, want: list[float]) -> None:
    items = learn(ngrams=1, weight=weight)
    assert items.weighed(items.counted([6, 4, 4], [])).tolist() == pytest.approx(want)


@pytest.mark.parametrize("letters", [(1, 3), (4, 3)])
def test_letters_that_make_no_run_are_refused(letters: tuple[int, int]) -> None:
    with pytest.raises(ConfigError, match=r"letters: .*the shortest"):
        Bag(letters=letters)
