"""The heads; and the items of a bag: runs of words and letters, how many are kept, what each counts."""

from collections import Counter
from math import log, sqrt

import numpy as np
import pytest
import torch

from weft.errors import ConfigError
from weft.tasks.classify.model import Bag, MultiLabelHead, SubclassHead, nats, thresholds
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


def test_words_with_vectors_are_items_however_rare() -> None:
    items = BagItems.learn(Bag(ngrams=1, letters=(2, 2), min_count=3), ROWS, WORDS, [4, 7, 9])
    assert items.kept == [(4,), (7,), (9,), ("<c",), ("ca",), ("at",), ("t>",)]
    assert items.documents == [3, 1, 0, 3, 3, 3, 3]


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


def test_the_loss_is_the_sum_of_binary_cross_entropies() -> None:
    torch.manual_seed(2)
    head = MultiLabelHead(3, 5).double()
    h = torch.randn(2, 1, 3, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([[[1.0, 0, 0, 1, 0]], [[0, 0, 0, 0, 0]]])
    mask = torch.ones(2, 1, dtype=torch.bool)
    probs = (1 / (1 + np.exp(-(h.detach().numpy() @ head.weight.detach().numpy().T))))[:, 0]
    there = target.numpy()[:, 0]
    expected = -(there * np.log(probs) + (1 - there) * np.log(1 - probs))
    loss = head.loss(h, target, mask)
    assert loss.total.item() == pytest.approx(expected.sum(), abs=1e-10) and int(loss.count) == 2
    np.testing.assert_allclose(nats(probs, there), expected.sum(-1), atol=1e-10)
    np.testing.assert_allclose(head(h).exp().detach().numpy()[:, 0], probs, atol=1e-10)
    assert head.best(h, mask).numpy()[:, 0].tolist() == (probs >= 0.5).tolist()
    parameters = (head.weight, head.bias)
    assert torch.autograd.gradcheck(lambda x, *_: head.loss(x, target, mask).total, (h, *parameters))
    alone = [head.loss(h[n : n + 1], target[n : n + 1], mask[n : n + 1]).total for n in range(2)]
    torch.testing.assert_close(sum(alone), loss.total)


def test_thresholds_have_the_highest_f1_of_all() -> None:
    chance = np.random.default_rng(4)
    probs, target = chance.random((37, 3)), (chance.random((37, 3)) < [0.5, 0.1, 0.0]).astype(float)
    found = thresholds(probs, target)
    assert found[2] == 0.5  # nobody has it

    def f1(column: int, limit: float) -> float:
        given, there = probs[:, column] >= limit, target[:, column] > 0
        return float(2 * (given & there).sum() / (given.sum() + there.sum()))

    for column in range(2):
        assert f1(column, found[column]) == max(f1(column, limit) for limit in probs[:, column])


def test_a_class_has_the_probability_of_its_subclasses_and_so_has_its_loss() -> None:
    head = SubclassHead(2, [1, 0, 1, 2]).double()
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0], [0.0, 0.0]]))
        head.bias.copy_(torch.tensor([0.0, 0.5, 0.0, -1.0]))
    h = torch.tensor([[[0.3, -0.2], [1.0, 2.0], [0.0, 0.0]]], dtype=torch.float64)
    logits = torch.tensor([[0.3, 0.3, 0.8, -1.0], [1.0, 2.5, 0.0, -1.0]], dtype=torch.float64)
    p = logits.exp() / logits.exp().sum(1, keepdim=True)
    want = torch.stack([p[:, 1], p[:, 0] + p[:, 2], p[:, 3]], 1)
    torch.testing.assert_close(head(h)[0, :2].exp(), want, rtol=1e-10, atol=0)
    assert head.best(h, torch.ones(1, 3, dtype=torch.bool))[0, :2].tolist() == [1, 0]
    mask = torch.tensor([[True, True, False]])
    loss = head.loss(h, torch.tensor([[2, 4 + 0, 0]]), mask)  # a subclass; the class 0 alone; padding
    right = -(p[0, 2] * want[0, 1]).log() / 2 - want[1, 0].log()
    torch.testing.assert_close(loss.total, right, rtol=1e-10, atol=0)
    assert int(loss.count) == 2
    smooth = SubclassHead(2, [1, 0, 1, 2], smoothing=0.1).double()
    smooth.load_state_dict(head.state_dict())
    found = smooth.train().loss(h, torch.tensor([[2, 4, 0]]), mask).total
    spread = (p.log().mean(1) + want.log().mean(1)).sum() / 2
    torch.testing.assert_close(found, 0.9 * right - 0.1 * spread, rtol=1e-10, atol=0)
    torch.testing.assert_close(smooth.eval().loss(h, torch.tensor([[2, 4, 0]]), mask).total, loss.total)
