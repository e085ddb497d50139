"""The CRF against all C^T sequences of tags, written out."""

from itertools import pairwise, product

import pytest
import torch

from tests.laws.members import close, normal, ready
from tests.nn.ways import near
from weft import masks
from weft.nn.heads.crf import Crf

C, SIZE, LENGTHS = 3, 5, (4, 1, 3)


def scored(head: Crf, h: torch.Tensor) -> dict[tuple[int, ...], float]:
    """s(x, y) of every y, for one row."""
    emitted = h @ head.emit.weight.T + head.emit.bias
    scores = {}
    for tags in product(range(C), repeat=len(h)):
        score = head.begin[tags[0]] + head.end[tags[-1]]
        score = score + sum(emitted[t, tag] for t, tag in enumerate(tags))
        score = score + sum(head.transitions[a, b] for a, b in pairwise(tags))
        scores[tags] = float(score.detach())
    return scores


@pytest.fixture
def head() -> Crf:
    return ready(lambda: Crf(SIZE, num_classes=C))


@pytest.fixture
def problem() -> tuple[torch.Tensor, torch.Tensor]:
    return normal(len(LENGTHS), max(LENGTHS), SIZE), masks.from_lengths(torch.tensor(LENGTHS), max(LENGTHS))


def test_the_loss_is_minus_log_of_the_share_among_all_sequences(head, problem) -> None:
    h, mask = problem
    target = torch.tensor([[2, 0, 1, 1], [1, 2, 2, 2], [0, 0, 2, 1]])
    want = 0.0
    for row, n in enumerate(LENGTHS):
        scores = scored(head, h[row, :n])
        whole = torch.tensor(list(scores.values()), dtype=torch.float64).logsumexp(0)
        want += float(whole) - scores[tuple(target[row, :n].tolist())]
    loss = head.loss(h, target, mask)
    assert loss.total.item() == pytest.approx(want, rel=1e-10)
    assert int(loss.count) == sum(LENGTHS)


def test_viterbi_finds_the_best_of_all_sequences(head, problem) -> None:
    h, mask = problem
    best = head.best(h, mask)
    for row, n in enumerate(LENGTHS):
        scores = scored(head, h[row, :n])
        assert tuple(best[row, :n].tolist()) == max(scores, key=scores.__getitem__)
    assert best[~mask].eq(0).all()


def test_marginals_are_sums_over_all_sequences(head, problem) -> None:
    h, mask = problem
    got = head.marginals(h, mask).exp()
    for row, n in enumerate(LENGTHS):
        scores = scored(head, h[row, :n])
        share = torch.tensor(list(scores.values()), dtype=torch.float64).softmax(0)
        want = torch.zeros(n, C, dtype=torch.float64)
        for tags, p in zip(scores, share, strict=True):
            for t, tag in enumerate(tags):
                want[t, tag] += p
        close(got[row, :n].detach(), want)
        close(head(h[row : row + 1, :n])[0].exp().detach(), want)


def test_neighbours_decide_where_the_words_cannot() -> None:
    head = ready(lambda: Crf(SIZE, num_classes=2))
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.begin[1] = 1.0
        head.transitions[0, 1] = head.transitions[1, 0] = 2.0
    h = torch.zeros(1, 5, SIZE, dtype=torch.float64)
    assert head.best(h, torch.ones(1, 5, dtype=torch.bool)).tolist() == [[1, 0, 1, 0, 1]]
    with torch.no_grad():
        head.end[0] = 1.5  # more than the beginning
    assert head.best(h, torch.ones(1, 5, dtype=torch.bool)).tolist() == [[0, 1, 0, 1, 0]]


def test_the_fast_sum_of_a_cpu_equals_the_plain_forward_algorithm(head, problem, monkeypatch) -> None:
    h, mask = problem
    mask = torch.cat([mask, mask[:1] & False])  # and a row without a word
    h = torch.cat([h, h[:1]]).requires_grad_()
    target = torch.tensor([[2, 0, 1, 1], [1, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]])
    learnt = [h, *head.parameters()]
    fast = head.loss(h, target, mask).total
    gradients = torch.autograd.grad(fast, learnt)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    plain = head.loss(h, target, mask).total
    close(fast, plain)
    near(gradients, torch.autograd.grad(plain, learnt), 1e-10)
