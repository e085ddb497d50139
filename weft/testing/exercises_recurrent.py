"""Checks of the exercises of the chapters from tokens to encoder-decoder.

Each function checks the exercise of its name; its docstring says, after "Define", what an answer defines.
Read next: exercises.py.
"""

import math
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import torch

from weft.ngram.kneser_ney import kneser_ney
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.cells.mingru import MinGRU
from weft.nn.recurrent import Stack
from weft.testing.exercise_answers import Answers, expect
from weft.text.vocabulary import EOS, SOS, Vocabulary


def tokens_perplexity(given: Answers) -> None:
    """`perplexity(probs)`, the perplexity of a list of probabilities."""
    prob = [0.5, 0.25, 0.125, 0.25]
    given.close("perplexity", 4.0, prob, hint="take exp of the mean of -ln P")
    prob = [0.9, 0.01, 0.3]
    expected = math.exp(-sum(map(math.log, prob)) / len(prob))
    given.close("perplexity", expected, prob, hint="take exp of the mean of -ln P")


def tokens_kneser(given: Answers) -> None:
    """`prob`, the probability of *new* after *is*."""
    # (1 - D) / 3 + 3 D / 3 times the lower order
    given.number("prob", 0.5 / 3 + 0.5 * 0.225, digits=2, hint="three words follow *is*, once each")


def tokens_merges(given: Answers) -> None:
    """`word`, a word in quotes."""
    given.word("word", ("newest",), hint="the most frequent pairs are now ▁ + n, ▁n + e and so on")


def tokens_sizes(given: Answers) -> None:
    """`nats_per_character(train, valid, size)` of a trigram Kneser-Ney model on byte pairs."""
    train = [
        f"the {a} {b} the {c}" for a in ("cat", "dog") for b in ("sees", "hears") for c in ("bird", "hen")
    ]
    valid = ["the hen sees the dog", "the cat hears"]
    vocabulary = Vocabulary.train(train, kind="bpe", size=25)

    def stream(lines: list[str]) -> np.ndarray:
        return np.array([t for ids in vocabulary.encode_batch(lines) for t in (SOS, *ids, EOS)])

    new = stream(valid)
    logp = kneser_ney(stream(train), size=25, order=3, start=SOS).score(new)[new != SOS]
    expected = -logp.sum() / sum(len(line) + 1 for line in valid)
    hint = "divide the sum of -ln P over all tokens by the letters of all lines, one more for each line end"
    given.close("nats_per_character", expected, train, valid, 25, hint=hint)


def tokens_zero(given: Answers) -> None:
    """`unsmoothed(train, new, order)`, the perplexity of `new`, from its token number `order` on."""
    # counts without smoothing: infinite for a new n-gram
    text = [1, 2, 3, 4, 1, 2]
    given.close(
        "unsmoothed", 1.0, text, text, 2, hint="on its own text each context here has one continuation"
    )
    text = [1, 2, 1, 3, 1, 2]
    expected = (1.5 * 1 * 3 * 1 * 1.5) ** 0.2  # P(2|1) = 2/3, P(1|2) = 1, P(3|1) = 1/3, P(1|3) = 1
    given.close(
        "unsmoothed", expected, text, text, 2, hint="divide by how often the context is followed by anything"
    )
    found = given.call("unsmoothed", text, [1, 3, 3], 2)
    expect(found == math.inf, f"`unsmoothed` gives {found} for a bigram that was never seen; it is infinite")


def vectors_softmax(given: Answers) -> None:
    """`softmax` and `negative`, two numbers of multiplications."""
    given.number("softmax", 50_000 * 100, hint="a full softmax needs the dot product with every word")
    given.number("negative", 6 * 100, hint="one true neighbour and K = 5 random words")


def vectors_bag(given: Answers) -> None:
    """`votes`, a dict from words and pairs, such as 'not good', to votes that classify all four texts."""
    votes = given.value("votes")
    expect(isinstance(votes, dict), f"`votes` is {votes!r}, expected a dict from words and pairs to votes")

    plain = {" ".join(one) if isinstance(one, tuple) else one: vote for one, vote in votes.items()}

    def total_of(text: str) -> float:
        return sum(float(plain.get(one, 0)) for one in {*text.split(), text})

    for text, label in (("good", 1), ("bad", 0), ("not good", 0), ("not bad", 1)):
        total = given.guarded(partial(total_of, text), "`votes`")
        expect(
            total > 0 if label else total < 0,
            f"the votes of {text!r} sum to {total:g}, but its class is {label}; give its pair a vote",
        )


def vectors_window(given: Answers) -> None:
    """`pairs(words, window)`, a list of (middle word, word near it), as skip-gram trains on."""
    words = ["the", "cat", "sat", "on", "the", "mat"]
    for window in (1, 2, 10):
        expected = Counter(
            (one, other)
            for i, one in enumerate(words)
            for j, other in enumerate(words)
            if i != j and abs(i - j) <= window
        )
        found = Counter(map(_pair, given.listed("pairs", words, window)))
        wrong = (expected - found) + (found - expected)
        expect(not wrong, f"`pairs` with window {window}: {next(iter(wrong), '')} is missing or too much")


def _pair(one: Any) -> tuple[Any, ...]:
    expect(isinstance(one, list | tuple), f"`pairs` has {one!r} in its list, expected a pair of words")
    return tuple(one)


def vectors_two(given: Answers) -> None:
    """`lowest`, the lowest probability that σ(v · v) can give to a word next to itself."""
    given.number("lowest", 0.5, share=True, hint="v · v is the squared length of v, which is never negative")


def elman_delay(given: Answers) -> None:
    """`W` [3, 1], `U` [3, 3] and `b` [3]."""
    # the third unit holds the input of two steps before, squeezed three times
    W, U, b = (given.tensor(name, shape) for name, shape in (("W", (3, 1)), ("U", (3, 3)), ("b", (3,))))
    x = torch.tensor([0.5, -0.2, 0.1, 0.9, -0.7], dtype=torch.float64)
    h, states = torch.zeros(3, dtype=torch.float64), []
    for value in x:
        h = torch.tanh(W[:, 0] * value + U @ h + b)
        states.append(h[2])
    expected = x[:-2].tanh().tanh().tanh()
    gap = (torch.stack(states)[2:] - expected).abs().max().item()
    expect(
        gap < 1e-6, "the third unit is not tanh(tanh(tanh(x))) of two steps before; let unit 3 copy unit 2"
    )


def elman_size(given: Answers) -> None:
    """`train(size, seed)`: trains the XOR network, returns the share of errors at bits 3, 6, 9, ..."""
    share = given.plain("train", 16, 1)
    expect(
        0 <= share < 0.15,
        f"`train(16, 1)` gives {share:.2f}; with 16 units few of the bits 3, 6, 9 ... are wrong",
    )


def elman_shapes(given: Answers) -> None:
    """`shapes`, a list of 'one to many', 'many to one', 'aligned' or 'unaligned', in that order."""
    # completing, marking, summary, melody, spam
    expected = ["aligned", "aligned", "unaligned", "one to many", "many to one"]
    shapes = given.value("shapes")
    expect(
        isinstance(shapes, list | tuple) and len(shapes) == len(expected),
        "`shapes` is not a list of five shapes, in the order of the question",
    )
    for number, (found, right) in enumerate(zip(shapes, expected, strict=True), 1):
        plain = str(found).strip().lower().replace("-", " ").replace("_", " ")
        expect(
            plain == right,
            f"`shapes`, place {number}: {found!r} is not right; how many outputs belong to an input?",
        )


def elman_sigmoid(given: Answers) -> None:
    """`sigmoid` and `tanh`, their steepest slopes."""
    given.number("sigmoid", 0.25, hint="σ(1 - σ) is largest where σ is one half")
    given.number("tanh", 1, hint="1 - tanh² is largest where tanh is 0")


def elman_jordan(given: Answers) -> None:
    """`prob`, the best probability of a one before a random bit, all that a Jordan network reads."""
    given.number(
        "prob",
        0.5,
        error=0.02,
        share=True,
        hint="nobody can know a random bit; what minimises the mean of -ln P?",
    )


def bptt_number(given: Answers) -> None:
    """`steps`, a number."""
    given.number(
        "steps", math.ceil(math.log(0.001) / math.log(0.95)), hint="solve 0.95**n <= 0.001 for a whole n"
    )


def bptt_scalar(given: Answers) -> None:
    """`state`, above 0, and `left`, two numbers."""
    # the fixed point of tanh(2h), and (2 (1 - h^2)) ** 10
    h = 1.0
    for _ in range(100):
        h = math.tanh(2 * h)
    given.number("state", h, digits=2, hint="iterate h = tanh(2 h) from a positive h")
    given.number("left", (2 * (1 - h * h)) ** 10, digits=1, hint="each step multiplies by 2 (1 - h**2)")


def bptt_every(given: Answers) -> None:
    """`bound`, a number."""
    given.number("bound", 0.5**10, digits=1, share=True, hint="add 0.5**11 + 0.5**12 + ...")


def bptt_inputs(given: Answers) -> None:
    """`norm(cell, x)`, the largest singular value of dh_T/dh_1 for x [1, T, D]."""
    for factor in (0.1, 1.0):
        torch.manual_seed(3)
        cell = Elman(4, 24).double()
        x = factor * torch.randn(1, 30, 4).double()
        states, _ = cell(x, cell.start(x[:, 0]))
        product = torch.eye(24).double()
        for h in states[0, 1:]:
            product = (1 - h**2)[:, None] * cell.weight_h @ product
        expected = torch.linalg.matrix_norm(product, 2).item()
        hint = "multiply diag(1 - h_t^2) U for t = 2 ... T and take the largest singular value"
        given.close("norm", expected, cell, x, hint=hint, tolerance=1e-4)


def bptt_relu(given: Answers) -> None:
    """`cell`, an IRNN."""
    # U = I and b = 0 with ReLU: without input, the state and its gradient stay
    cell = given.part("cell", Elman)
    h = torch.rand(2, cell.size).to(cell.weight_h.dtype)
    with torch.no_grad():
        y, _ = cell.step(torch.zeros(2, cell.in_size).to(h.dtype), (h,))
    expect(
        torch.allclose(y, h),
        "without input the IRNN keeps its state; set activation='relu', weights='identity'",
    )


def lstm_parameters(given: Answers) -> None:
    """`lstm` and `elman`, two numbers of parameters."""
    matrices = 200 * 100 + 200**2
    for name, kind, gates, hint in (
        ("lstm", LSTM, 4, "count W, U and b of four gates"),
        ("elman", Elman, 1, "count W, U and b"),
    ):
        expected = sum(p.numel() for p in kind(100, 200).parameters())
        slips = {
            gates * matrices: "each unit also has a bias in every gate"
            if gates > 1
            else "each unit also has a bias",
            gates * (matrices + 400): "PyTorch keeps two vectors of biases; one is enough",
            matrices + 200: "an LSTM has four gates, each with W, U and b of its own",
            4 * (matrices + 200): "an Elman cell has no gates",
        }
        given.number(name, expected, hint=hint, slips=slips)


def lstm_backward(given: Answers) -> None:
    """`zero`, a set of the letters i, f, o and c (the candidate), and `factor`, which multiplies δc."""
    zero = {str(one).strip().lower() for one in given.several("zero")}
    expect(zero <= set("ifoc"), "`zero` is not a set of the letters i, f, o and c")
    for letter, why in (("f", "f(1 - f) = 0"), ("i", "i(1 - i) = 0"), ("c", "it is multiplied by i")):
        expect(letter in zero, f"`zero` lacks {letter}: {why}")
    expect("o" not in zero, "`zero` has o, but the output gate learns from what it shows")
    given.number("factor", 1, hint="the gradient of c is multiplied by the forget gate")


def lstm_bias(given: Answers) -> None:
    """`left(bias, steps)`, the share of the cell state that is left if only the bias acts on the gate."""
    for bias, steps in ((-2.0, 20), (1.0, 20), (3.0, 100)):
        expected = (1 / (1 + math.exp(-bias))) ** steps
        given.close(
            "left",
            expected,
            bias,
            steps,
            hint="f = sigmoid(bias), and the cell state is multiplied by f each step",
        )


def lstm_1997(given: Answers) -> None:
    """`cell`, the LSTM of 1997."""
    # what is added to c before a step is found in c after it: f = 1
    cell = given.part("cell", LSTM)
    dtype = cell.weight_x.dtype
    x, h, c = (torch.randn(3, n, dtype=dtype) for n in (cell.in_size, cell.size, cell.size))
    with torch.no_grad():
        _, (_, one) = cell.step(x, (h, c))
        _, (_, two) = cell.step(x, (h, c + 1))
    expect(
        torch.allclose(two - one, torch.ones_like(one), atol=1e-4),
        "a forget gate still scales c; pass forget_gate=False",
    )


def gru_keep(given: Answers) -> None:
    """`cell`, a GRU that keeps its state."""
    cell = given.part("cell", GRU)
    dtype = cell.weight_x.dtype
    h = before = torch.randn(2, cell.size, dtype=dtype)
    with torch.no_grad():
        for _ in range(100):
            h, _ = cell.step(torch.randn(2, cell.in_size, dtype=dtype), (h,))
    expect(
        torch.allclose(h, before, atol=1e-2),
        "the state changes within 100 steps; the update gate must be 1: raise its bias",
    )


def gru_before(given: Answers) -> None:
    """`run(cell, x)`, the states [B, T, H] of your loop with the weights of the cell."""
    torch.manual_seed(3)
    cell = GRU(3, 5, reset="before").double()
    x = torch.randn(2, 7, 3).double()
    with torch.no_grad():
        expected, _ = cell(x, cell.start(x[:, 0]))
        found = given.array("run", (2, 7, 5), cell, x)
    gap = (found - expected).abs().max().item()
    expect(
        gap < 1e-8,
        f"`run` differs by {gap:.0e}; multiply the state by the reset gate before U of the candidate",
    )


def gru_light(given: Answers) -> None:
    """`apart(stack, ones)`, the largest difference of the outputs after `ones` and after `ones - 1` ones."""
    torch.manual_seed(3)
    stack = Stack(1, (4, 4), cell=MinGRU).double()
    with torch.no_grad():
        y, _ = stack(torch.ones(1, 50, 1, dtype=torch.float64))
        for ones in (2, 3, 50):
            expected = (y[0, ones - 1] - y[0, ones - 2]).abs().max().item()
            hint = "feed ones only, and compare the last two outputs of the top layer"
            given.close("apart", expected, stack, ones, hint=hint)


def stacks_parameters(given: Answers) -> None:
    """`concatenated` and `summed`, two numbers of parameters."""

    def layer(inputs: int) -> int:
        return 2 * sum(p.numel() for p in LSTM(inputs, 100).parameters())

    given.number("concatenated", layer(64) + layer(200), hint="layer 2 reads 200 features in each direction")
    given.number("summed", layer(64) + layer(100), hint="layer 2 reads 100 features in each direction")


def stacks_parallel(given: Answers) -> None:
    """`steps(layers, positions, bidirectional)`."""
    for layers, positions in ((1, 7), (3, 7), (8, 20)):
        hint = "layer n can compute position t as soon as layer n - 1 has it"
        given.close("steps", layers + positions - 1, layers, positions, False, hint=hint)
        hint = "a bidirectional layer is complete before the next one begins"
        given.close("steps", layers * positions, layers, positions, True, hint=hint)


def stacks_cloze(given: Answers) -> None:
    """`sees_itself(sizes)`, the largest derivative of [a_3; b_5] by x_4."""
    # one bidirectional layer does not see the hidden letter, two do
    one, two = (given.plain("sees_itself", sizes) for sizes in ((8,), (8, 8)))
    expect(one == 0.0, f"`sees_itself((8,))` gives {one:.1e}; with one layer the derivative is exactly 0")
    expect(two > 0.0, "`sees_itself((8, 8))` gives 0; the second layer reads joined states")


def encdec_chain(given: Answers) -> None:
    """`mean` and `mode`, the expected and the most likely length."""
    given.number("mean", 10, error=0.3, hint="the mean of a geometric distribution is 1 / p")
    given.number("mode", 1, hint="every longer output has another factor of 0.9")


def encdec_sampling(given: Answers) -> None:
    """`half` and `tenth`, two numbers of updates."""
    # k / (k + e^(n / k)) for k = 100
    given.number("half", 100 * math.log(100), error=1, hint="k = e**(n / k)")
    given.number("tenth", 100 * math.log(900), error=1, hint="e**(n / k) = 9 k")


def encdec_tags(given: Answers) -> None:
    """`pairs` and `unseen`, two numbers."""
    given.number("pairs", 6, hint="count ordered pairs of three languages")
    given.number("unseen", 2, hint="subtract the four pairs of the training data")


def encdec_both(given: Answers) -> None:
    """`encoder`, a `RecurrentEncoder` of 32 inputs."""
    encoder = given.value("encoder")
    x = torch.randn(1, 6, 32, requires_grad=True)
    mask = torch.ones(1, 6, dtype=torch.bool)
    first = given.guarded(lambda: encoder(x, mask).states[0, 0], "`encoder(x, mask)`")
    first.sum().backward()
    reached = x.grad is not None and x.grad[0, -1].abs().max().item() > 0
    expect(reached, "the first state does not depend on the last input; pass bidirectional=True")


def encdec_reverse(given: Answers) -> None:
    """`distances(length, reverse)`, for each source word the steps from reading it to writing its target."""
    # word t is read at step t or length + 1 - t, and written at step length + t
    for length in (1, 4, 9):
        for reverse in (False, True):
            expected = [2 * t - 1 if reverse else length for t in range(1, length + 1)]
            found = given.listed("distances", length, reverse)
            expect(
                found == expected,
                f"`distances({length}, {reverse})` gives {found}, which is not right: target word "
                f"t is written at step {length} + t",
            )
