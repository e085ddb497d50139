"""The exercises of the course that have a checkable answer: what an answer defines, and how it is checked.

    from weft.testing import check_exercise

    check_exercise("lstm-parameters", {"lstm": 240_800, "elman": 60_200})

`weft check EXERCISE FILE` does the same for a file. The exercises themselves are in docs/course, under
the same names, and docs/course/solutions.py has an answer to each. Exercises that are answered in words,
or by a training, are not here. Read next: exercise_answers.py, which reads what a student defined.
"""

import difflib
import math
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from weft.errors import ConfigError
from weft.metrics.perplexity import perplexity
from weft.ngram.kneser_ney import kneser_ney
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.search.filters import top_p
from weft.testing.exercise_answers import Answers, expect
from weft.text.vocabulary import EOS, SOS, Vocabulary


class Exercise(NamedTuple):
    """A checkable exercise.

    Attributes:
        asks: the names that an answer defines, as a sentence after "Define".
        check: raises AssertionError with one sentence for a wrong answer.
    """

    asks: str
    check: Callable[[Answers], None]


def check_exercise(name: str, given: Mapping[str, Any]) -> None:
    """Check an answer to an exercise of the course, and print that it is right.

    Args:
        name: of the exercise, as in the course.
        given: the names that the answer defines, such as globals() in a notebook.

    Raises:
        ConfigError: there is no such exercise.
        AssertionError: the answer is wrong; says in one sentence what to look at.

    Example:
        >>> check_exercise("bptt-number", {"steps": 135})
        ✓ bptt-number
    """
    exercise_of(name).check(Answers(given))
    print(f"✓ {name}")


def exercise_of(name: str) -> Exercise:
    """The exercise of that name.

    Raises:
        ConfigError: there is none.
    """
    if name not in EXERCISES:
        near = difflib.get_close_matches(name, EXERCISES, 1)
        hint = f"did you mean {near[0]!r}?" if near else "weft check lists them"
        raise ConfigError(f"no exercise with a check is named {name!r}; {hint}")
    return EXERCISES[name]


def tokens_perplexity(given: Answers) -> None:
    """Perplexity is exp of the mean -ln P."""
    prob = [0.5, 0.25, 0.125, 0.25]
    given.close("perplexity", 4.0, prob, hint="take exp of the mean of -ln P")
    prob = [0.9, 0.01, 0.3]
    expected = perplexity(-sum(map(math.log, prob)), len(prob)).value
    given.close("perplexity", expected, prob, hint="take exp of the mean of -ln P")


def tokens_kneser(given: Answers) -> None:
    """(1 - D) / 3 + 3 D / 3 times the lower order."""
    given.number("prob", 0.5 / 3 + 0.5 * 0.225, hint="three words follow *is*, once each", tolerance=1e-4)


def tokens_sizes(given: Answers) -> None:
    """The text's nats divided by its characters, line ends included."""
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
    """Counts without smoothing: 1 where each context has one continuation, infinite for a new n-gram."""
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
    """A dot product of each of 50,000 words, or of six."""
    given.number("softmax", 50_000 * 100, hint="a full softmax needs the dot product with every word")
    given.number("negative", 6 * 100, hint="one true neighbour and K = 5 random words")


def vectors_window(given: Answers) -> None:
    """Every word with the words at most `window` places away."""
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


def elman_delay(given: Answers) -> None:
    """The third unit holds the input of two steps before, squeezed three times."""
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
    """Sixteen units learn XOR; the share of errors is one number."""
    share = given.plain("train", 16, 1)
    expect(
        0 <= share < 0.15,
        f"`train(16, 1)` gives {share:.2f}; with 16 units few of the bits 3, 6, 9 ... are wrong",
    )


def bptt_number(given: Answers) -> None:
    """0.95 ** n <= 0.001."""
    given.number(
        "steps", math.ceil(math.log(0.001) / math.log(0.95)), hint="solve 0.95**n <= 0.001 for a whole n"
    )


def bptt_scalar(given: Answers) -> None:
    """The fixed point of tanh(2h), and (2 (1 - h^2)) ** 10."""
    h = 1.0
    for _ in range(100):
        h = math.tanh(2 * h)
    given.number("state", h, hint="iterate h = tanh(2 h) from a positive h", tolerance=1e-3)
    given.number("left", (2 * (1 - h * h)) ** 10, hint="each step multiplies by 2 (1 - h**2)", tolerance=5e-9)


def bptt_every(given: Answers) -> None:
    """The sum of 0.5 ** n for n above 10."""
    given.number("bound", 0.5**10, hint="add 0.5**11 + 0.5**12 + ...", tolerance=1e-5)


def bptt_inputs(given: Answers) -> None:
    """The norm of the product of diag(1 - h^2) U."""
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
    """U = I and b = 0 with ReLU: without input, the state and its gradient stay."""
    cell = given.part("cell", Elman)
    h = torch.rand(2, cell.size).to(cell.weight_h.dtype)
    with torch.no_grad():
        y, _ = cell.step(torch.zeros(2, cell.in_size).to(h.dtype), (h,))
    expect(
        torch.allclose(y, h),
        "without input the IRNN keeps its state; set activation='relu', weights='identity'",
    )


def lstm_parameters(given: Answers) -> None:
    """Four gates, or one layer."""
    for name, kind, hint in (("lstm", LSTM, "count four gates"), ("elman", Elman, "count W, U and b")):
        expected = sum(p.numel() for p in kind(100, 200).parameters())
        given.number(name, expected, hint=hint)


def lstm_bias(given: Answers) -> None:
    """Sigmoid of the bias, to the power of the steps."""
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
    """What is added to c before a step is found in c after it: f = 1."""
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
    """100 random steps leave the state as it was."""
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
    """The loop by hand equals Weft's cell with reset="before"."""
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


def stacks_parameters(given: Answers) -> None:
    """Layer 2 reads both directions, or their sum."""

    def layer(inputs: int) -> int:
        return 2 * sum(p.numel() for p in LSTM(inputs, 100).parameters())

    given.number("concatenated", layer(64) + layer(200), hint="layer 2 reads 200 features in each direction")
    given.number("summed", layer(64) + layer(100), hint="layer 2 reads 100 features in each direction")


def stacks_parallel(given: Answers) -> None:
    """A staircase, or one layer after the other."""
    for layers, positions in ((1, 7), (3, 7), (8, 20)):
        hint = "layer n can compute position t as soon as layer n - 1 has it"
        given.close("steps", layers + positions - 1, layers, positions, False, hint=hint)
        hint = "a bidirectional layer is complete before the next one begins"
        given.close("steps", layers * positions, layers, positions, True, hint=hint)


def stacks_cloze(given: Answers) -> None:
    """One bidirectional layer does not see the hidden letter, two do."""
    one, two = (given.plain("sees_itself", sizes) for sizes in ((8,), (8, 8)))
    expect(one == 0.0, f"`sees_itself((8,))` gives {one:.1e}; with one layer the derivative is exactly 0")
    expect(two > 0.0, "`sees_itself((8, 8))` gives 0; the second layer reads joined states")


def encdec_chain(given: Answers) -> None:
    """A geometric distribution."""
    given.number("mean", 10, hint="the mean of a geometric distribution is 1 / p")
    given.number("mode", 1, hint="every longer output has another factor of 0.9")


def encdec_sampling(given: Answers) -> None:
    """k / (k + e^(n / k)) for k = 100."""
    given.number("half", 100 * math.log(100), hint="k = e**(n / k)", tolerance=1)
    given.number("tenth", 100 * math.log(900), hint="e**(n / k) = 9 k", tolerance=1)


def encdec_tags(given: Answers) -> None:
    """Ordered pairs of three languages, and those without training pairs."""
    given.number("pairs", 6, hint="count ordered pairs of three languages")
    given.number("unseen", 2, hint="subtract the four pairs of the training data")


def encdec_both(given: Answers) -> None:
    """The first state of a bidirectional encoder depends on the last input."""
    encoder = given.value("encoder")
    x = torch.randn(1, 6, 32, requires_grad=True)
    mask = torch.ones(1, 6, dtype=torch.bool)
    first = given.guarded(lambda: encoder(x, mask).states[0, 0], "`encoder(x, mask)`")
    first.sum().backward()
    reached = x.grad is not None and x.grad[0, -1].abs().max().item() > 0
    expect(reached, "the first state does not depend on the last input; pass bidirectional=True")


def attention_scaled(given: Answers) -> None:
    """Mean 0 and variance d."""
    for d in (1, 64, 512):
        found = tuple(given.listed("moments", d))
        expect(found == (0, d), f"`moments({d})` gives {found}; each product has mean 0 and variance 1")


def attention_queries(given: Answers) -> None:
    """Nearly all weight on the second state."""
    query = given.tensor("query", (2,))
    states = torch.tensor([[0.0, 1.0], [3.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    weight = (states @ query).softmax(0)[1].item()
    expect(
        weight > 0.95, f"`query` gives *good* the weight {weight:.2f}; let it point where only *good* does"
    )


def decoding_alpha(given: Answers) -> None:
    """ln 0.11 / 2^a = ln 0.099 / 4^a."""
    expected = math.log2(math.log(0.099) / math.log(0.11))
    given.number(
        "alpha", expected, hint="set ln 0.11 / 2**alpha equal to ln 0.099 / 4**alpha", tolerance=1e-3
    )


def decoding_coin(given: Answers) -> None:
    """The most probable sequence is not typical."""
    ways = [math.comb(20, n) * 0.6**n * 0.4 ** (20 - n) for n in range(21)]
    given.number("sequence", 0.6**20, hint="20 heads, each with 0.6", tolerance=1e-7)
    given.number("heads", ways.index(max(ways)), hint="the number of heads has a binomial distribution")
    given.number(
        "prob", max(ways), hint="multiply by the number of sequences with that many heads", tolerance=1e-3
    )


def decoding_top_p(given: Answers) -> None:
    """As many tokens as weft.search keeps."""
    for seed in range(5):
        chance = torch.Generator().manual_seed(seed)
        logp = torch.randn(1, 20, generator=chance).log_softmax(-1)
        expected = (top_p(logp, 0.8) > -math.inf).sum().item()
        hint = "the fewest most probable tokens that together reach p"
        given.close("kept", expected, logp[0].exp().tolist(), 0.8, hint=hint)


def self_attention_cost(given: Answers) -> None:
    """Four maps with biases; T^2 energies a head."""
    given.number("parameters", 4 * 512**2 + 4 * 512, hint="four linear maps of 512 features, with biases")
    given.number("one_head", 1000**2, hint="every position has an energy for every position")
    given.number("eight_heads", 8 * 1000**2, hint="every head has its own energies")


def self_attention_mask(given: Answers) -> None:
    """Both ways agree in the middle of the range; only one survives energies of 200."""
    energy, mask = torch.tensor([0.3, -1.0, 2.0]), torch.tensor([1.0, 1.0, 0.0])
    expected = torch.tensor([0.3, -1.0, -math.inf]).softmax(-1)
    for name in ("hidden", "multiplied"):
        found = given.array(name, (3,), energy, mask)
        expect(
            torch.allclose(found, expected), f"`{name}` gives {found.tolist()}, expected {expected.tolist()}"
        )
    energy, mask = torch.tensor([0.0, 200.0]), torch.tensor([1.0, 0.0])
    found = given.array("hidden", (2,), energy, mask)
    expect(
        found.tolist() == [1.0, 0.0], f"`hidden` gives {found.tolist()} for (0, 200); mask before the softmax"
    )
    found = given.array("multiplied", (2,), energy, mask)
    expect(
        bool(found.isnan()[0]),
        "`multiplied` must apply softmax to all energies first, then mask and divide: 0/0",
    )


def self_attention_ablate(given: Answers) -> None:
    """One head has equal weights, the other is unchanged."""
    weights = torch.randn(2, 2, 3, 5).softmax(-1)
    found = given.array("off", (2, 2, 3, 5), weights.clone(), 1)
    expect(torch.equal(found[:, 0], weights[:, 0]), "`off(weights, 1)` changes head 0; axis 1 is the head")
    expect(
        torch.allclose(found[:, 1], torch.full((2, 3, 5), 0.2)),
        "head 1 needs the weight 1/S for each of S positions",
    )


def positions_row(given: Answers) -> None:
    """Sine and cosine of 3 and of 0.3."""
    row = given.tensor("row", (4,))
    expected = torch.tensor([math.sin(3), math.cos(3), math.sin(0.3), math.cos(0.3)], dtype=torch.float64)
    expect(torch.allclose(row, expected, atol=0.006), "take sin and cos of 3, then of 3 * 100**(-2/4)")


def transformer_bert(given: Answers) -> None:
    """Blocks, embeddings, a norm and a linear layer."""
    blocks = 12 * (12 * 768**2 + 13 * 768)
    total = blocks + (30_522 + 512 + 2) * 768 + 2 * 768 + 768**2 + 768
    given.number("parameters", total, hint=f"the 12 blocks alone have {blocks:,}")


def transformer_tied(given: Answers) -> None:
    """V D of the untied model."""
    saved = 50_257 * 768
    untied = 12 * (12 * 768**2 + 13 * 768) + 2 * saved + 1024 * 768 + 2 * 768
    given.number("saved", saved, hint="a tied head has no matrix of its own")
    given.number("share", saved / untied, hint=f"the untied model has {untied:,}", tolerance=0.005)


def transformer_norm(given: Answers) -> None:
    """Rises over the warm-up, then stays."""
    for update, warmup in ((0, 1), (0, 100), (49, 100), (99, 100), (500, 100)):
        expected = 0.002 * min(1, (update + 1) / warmup)
        given.close(
            "rate", expected, update, warmup, hint="rise in equal steps to 0.002 at update number warmup"
        )


def recurrence_half(given: Answers) -> None:
    """2^(-1/1000) and 2^-10."""
    given.number("decay", 0.5 ** (1 / 1000), hint="decay**1000 is one half", tolerance=1e-6)
    given.number("left", 2.0**-10, hint="10,000 steps are ten half-lives", tolerance=1e-4)


def recurrence_parity(given: Answers) -> None:
    """Odd after each bit."""
    bits = torch.randint(2, (50,), generator=torch.Generator().manual_seed(1)).tolist()
    found = list(map(bool, given.listed("parity", bits)))
    expected = [bool(n % 2) for n in np.cumsum(bits).tolist()]
    expect(
        found == expected,
        "`parity` is wrong for a random row of bits; a one multiplies the state by 1 - 2 = -1",
    )


def recurrence_keys(given: Answers) -> None:
    """Few keys are held well, more keys than features are not."""
    errors = [given.plain("error", count) for count in (8, 32, 128)]
    rising = all(a < b for a, b in pairwise(errors))
    expect(rising and errors[0] < 0.5, f"`error` gives {errors}; eight keys of 64 features leave about 0.3")
    expect(
        errors[-1] > 0.8,
        f"`error(128)` gives {errors[-1]:.2f}; 128 keys in 64 features are no better than zeros",
    )


def evaluating_holm(given: Answers) -> None:
    """Stops at the first p that is too large."""
    for p in ([0.012, 0.020, 0.030, 0.400], [0.012, 0.016, 0.030, 0.400], [0.4, 0.03, 0.016, 0.012]):
        expected = 0
        for rank, one in enumerate(sorted(p)):
            if one > 0.05 / (len(p) - rank):
                break
            expected += 1
        given.close(
            "holm",
            expected,
            p,
            hint="sort; compare the k-th smallest with 0.05 / (m - k + 1); stop at the first miss",
        )


def evaluating_seeds(given: Answers) -> None:
    """2 sqrt(2 / k) = 1."""
    given.number("seeds", 8, hint="a difference of two means has the standard error sigma * sqrt(2 / k)")


EXERCISES: dict[str, Exercise] = {
    "tokens-perplexity": Exercise(
        "`perplexity(probs)`, the perplexity of a list of probabilities.", tokens_perplexity
    ),
    "tokens-kneser": Exercise("`prob`, the probability of *new* after *is*.", tokens_kneser),
    "tokens-sizes": Exercise(
        "`nats_per_character(train, valid, size)` of a trigram Kneser-Ney model on byte pairs.",
        tokens_sizes,
    ),
    "tokens-zero": Exercise(
        "`unsmoothed(train, new, order)`, the perplexity of `new`, from its token number `order` on.",
        tokens_zero,
    ),
    "vectors-softmax": Exercise("`softmax` and `negative`, two numbers of multiplications.", vectors_softmax),
    "vectors-window": Exercise(
        "`pairs(words, window)`, a list of (middle word, word near it), as skip-gram trains on.",
        vectors_window,
    ),
    "elman-delay": Exercise("`W` [3, 1], `U` [3, 3] and `b` [3].", elman_delay),
    "elman-size": Exercise(
        "`train(size, seed)`: trains the XOR network, returns the share of errors at bits 3, 6, 9, ...",
        elman_size,
    ),
    "bptt-number": Exercise("`steps`, a number.", bptt_number),
    "bptt-scalar": Exercise("`state`, above 0, and `left`, two numbers.", bptt_scalar),
    "bptt-every": Exercise("`bound`, a number.", bptt_every),
    "bptt-inputs": Exercise(
        "`norm(cell, x)`, the largest singular value of dh_T/dh_1 for x [1, T, D].", bptt_inputs
    ),
    "bptt-relu": Exercise("`cell`, an IRNN.", bptt_relu),
    "lstm-parameters": Exercise("`lstm` and `elman`, two numbers of parameters.", lstm_parameters),
    "lstm-bias": Exercise(
        "`left(bias, steps)`, the share of the cell state that is left if only the bias acts on the gate.",
        lstm_bias,
    ),
    "lstm-1997": Exercise("`cell`, the LSTM of 1997.", lstm_1997),
    "gru-keep": Exercise("`cell`, a GRU that keeps its state.", gru_keep),
    "gru-before": Exercise(
        "`run(cell, x)`, the states [B, T, H] of your loop with the weights of the cell.",
        gru_before,
    ),
    "stacks-parameters": Exercise(
        "`concatenated` and `summed`, two numbers of parameters.", stacks_parameters
    ),
    "stacks-parallel": Exercise("`steps(layers, positions, bidirectional)`.", stacks_parallel),
    "stacks-cloze": Exercise(
        "`sees_itself(sizes)`, the largest derivative of [a_3; b_5] by x_4.", stacks_cloze
    ),
    "encdec-chain": Exercise("`mean` and `mode`, the expected and the most likely length.", encdec_chain),
    "encdec-sampling": Exercise("`half` and `tenth`, two numbers of updates.", encdec_sampling),
    "encdec-tags": Exercise("`pairs` and `unseen`, two numbers.", encdec_tags),
    "encdec-both": Exercise("`encoder`, a `RecurrentEncoder` of 32 inputs.", encdec_both),
    "attention-scaled": Exercise("`moments(d)`, mean and variance.", attention_scaled),
    "attention-queries": Exercise("`query`, two numbers.", attention_queries),
    "decoding-alpha": Exercise("`alpha`, a number.", decoding_alpha),
    "decoding-coin": Exercise(
        "`sequence` (a probability), `heads` (the most probable number) and `prob` (its probability).",
        decoding_coin,
    ),
    "decoding-top-p": Exercise(
        "`kept(probs, p)`, the number of tokens that top-p keeps of a list.", decoding_top_p
    ),
    "self-attention-cost": Exercise(
        "`parameters`, `one_head` and `eight_heads` (numbers of energies).", self_attention_cost
    ),
    "self-attention-mask": Exercise(
        "`hidden(energy, mask)` and `multiplied(energy, mask)`, the weights of both ways.",
        self_attention_mask,
    ),
    "self-attention-ablate": Exercise(
        "`off(weights, head)` for weights [B, H, T, S], with equal weights in that head.",
        self_attention_ablate,
    ),
    "positions-row": Exercise("`row`, four numbers.", positions_row),
    "transformer-bert": Exercise("`parameters`, a number.", transformer_bert),
    "transformer-tied": Exercise(
        "`saved`, a number of parameters, and `share`, between 0 and 1.", transformer_tied
    ),
    "transformer-norm": Exercise(
        "`rate(update, warmup)`, the learning rate of an update, counted from 0.", transformer_norm
    ),
    "recurrence-half": Exercise("`decay` and `left`, two numbers.", recurrence_half),
    "recurrence-parity": Exercise(
        "`parity(bits)`, a list that says after each bit whether it is odd.", recurrence_parity
    ),
    "recurrence-keys": Exercise(
        "`error(count)`, the mean error with that many random keys of 64 features.", recurrence_keys
    ),
    "evaluating-holm": Exercise(
        "`holm(p)`, how many of the p-values are significant at 0.05.", evaluating_holm
    ),
    "evaluating-seeds": Exercise("`seeds`, a number.", evaluating_seeds),
}
"""Every checkable exercise, in the order of the course."""
