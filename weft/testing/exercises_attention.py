"""Checks of the exercises of the chapters from attention to evaluating.

Each function checks the exercise of its name, as in exercises_recurrent.py. Read next: exercises.py.
"""

import math
from itertools import pairwise

import torch

from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.scores import Dot
from weft.search.filters import top_p
from weft.testing.exercise_answers import Answers, expect


def attention_scaled(given: Answers) -> None:
    """`moments(d)`, mean and variance."""
    for d in (1, 64, 512):
        mean, variance = given.array("moments", (2,), d).tolist()
        # an estimate by sampling is a little off
        right = abs(mean) <= 0.2 * math.sqrt(d) and abs(variance - d) <= 0.2 * d
        expect(
            right, f"`moments({d})` gives ({mean:g}, {variance:g}); each product has mean 0 and variance 1"
        )


def attention_scores(given: Answers) -> None:
    """`decoder`, a `RecurrentDecoder` with the score `Dot` for your encoder."""
    decoder = given.part("decoder", RecurrentDecoder)
    score = next((one for one in decoder.modules() if isinstance(one, Dot)), None)
    expect(score is not None, "`decoder` has another score; pass score=Dot")


def attention_queries(given: Answers) -> None:
    """`query`, for a context near *good*, and `mean`, for the mean of all states, two numbers each."""
    query = given.tensor("query", (2,))
    states = torch.tensor([[0.0, 1.0], [3.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    weight = (states @ query).softmax(0)[1].item()
    expect(
        weight > 0.95, f"`query` gives *good* the weight {weight:.2f}; let it point where only *good* does"
    )
    spread = (states @ given.tensor("mean", (2,))).softmax(0)
    equal = bool((spread - 1 / 3).abs().max() < 1e-3)
    expect(
        equal, f"`mean` gives the weights {[round(one, 2) for one in spread.tolist()]}, which are not equal"
    )


def attention_uniform(given: Answers) -> None:
    """`weights(mask)` for a mask [B, S], True at real positions."""
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    found = given.array("weights", (2, 5), mask)
    expected = mask / mask.sum(1, keepdim=True)
    expect(
        bool((found.double() - expected).abs().max() < 1e-6),
        "`weights` are not equal at the real positions (True in the mask) and 0 elsewhere",
    )


def decoding_alpha(given: Answers) -> None:
    """`alpha`, a number."""
    # ln 0.11 / 2^a = ln 0.099 / 4^a
    expected = math.log2(math.log(0.099) / math.log(0.11))
    given.number("alpha", expected, digits=1, hint="set ln 0.11 / 2**alpha equal to ln 0.099 / 4**alpha")


def decoding_coin(given: Answers) -> None:
    """`sequence` (a probability), `heads` (the most probable number) and `prob` (its probability)."""
    ways = [math.comb(20, n) * 0.6**n * 0.4 ** (20 - n) for n in range(21)]
    given.number("sequence", 0.6**20, digits=1, share=True, hint="20 heads, each with 0.6")
    given.number("heads", ways.index(max(ways)), hint="the number of heads has a binomial distribution")
    given.number(
        "prob",
        max(ways),
        digits=2,
        error=0.01,
        share=True,
        hint="multiply by the number of sequences with that many heads",
    )


def decoding_top_p(given: Answers) -> None:
    """`kept(probs, p)`, the number of tokens that top-p keeps of a list."""
    for seed in range(5):
        chance = torch.Generator().manual_seed(seed)
        logp = torch.randn(1, 20, generator=chance).log_softmax(-1)
        expected = (top_p(logp, 0.8) > -math.inf).sum().item()
        hint = "the fewest most probable tokens that together reach p"
        given.close("kept", expected, logp[0].exp().tolist(), 0.8, hint=hint)


def self_attention_cost(given: Answers) -> None:
    """`parameters`, `one_head` and `eight_heads` (numbers of energies)."""
    given.number("parameters", 4 * 512**2 + 4 * 512, hint="four linear maps of 512 features, with biases")
    given.number("one_head", 1000**2, hint="every position has an energy for every position")
    given.number("eight_heads", 8 * 1000**2, hint="every head has its own energies")


def self_attention_similar(given: Answers) -> None:
    """`attend(x)`, self-attention without parameters and mask for x [T, D]."""
    torch.manual_seed(3)
    x = torch.randn(5, 3, dtype=torch.float64)
    found = given.array("attend", (5, 3), x)
    gap = (found - (x @ x.T).softmax(-1) @ x).abs().max().item()
    expect(
        gap < 1e-8, f"`attend` differs by {gap:.0e}; the weights are softmax(X Xᵀ), without a scale or a mask"
    )


def self_attention_pixels(given: Answers) -> None:
    """`convolution(places, channels)`, `block(places, channels)` and `equal`, places for 256 channels."""
    # 9 N C² and 2 N C² + N² C
    for places, channels in ((100, 64), (1792, 256)):
        hint = "a filter reads nine places for each of N places, from C channels to C"
        given.close("convolution", 9 * places * channels**2, places, channels, hint=hint)
        hint = "four matrices of C · C/2 at each place, then energies and sums of N · N · C/2 each"
        given.close("block", 2 * places * channels**2 + places**2 * channels, places, channels, hint=hint)
    given.number("equal", 7 * 256, hint="solve 9 N C² = 2 N C² + N² C for N")


def self_attention_mask(given: Answers) -> None:
    """`hidden(energy, mask)` and `multiplied(energy, mask)`, the weights of both ways."""
    # both ways agree in the middle of the range; only one survives energies of 200
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
    """`off(weights, head)` for weights [B, H, T, S], with equal weights in that head."""
    weights = torch.randn(2, 2, 3, 5).softmax(-1)
    found = given.array("off", (2, 2, 3, 5), weights.clone(), 1)
    expect(torch.equal(found[:, 0], weights[:, 0]), "`off(weights, 1)` changes head 0; axis 1 is the head")
    expect(
        torch.allclose(found[:, 1], torch.full((2, 3, 5), 0.2)),
        "head 1 needs the weight 1/S for each of S positions",
    )


def positions_row(given: Answers) -> None:
    """`row`, four numbers."""
    # sine and cosine of 3 and of 0.3
    row = given.tensor("row", (4,))
    expected = torch.tensor([math.sin(3), math.cos(3), math.sin(0.3), math.cos(0.3)], dtype=torch.float64)
    expect(torch.allclose(row, expected, atol=0.006), "take sin and cos of 3, then of 3 * 100**(-2/4)")


def positions_alibi(given: Answers) -> None:
    """`bias(length, slope)`, what ALiBi adds [length, length] in a head that reads both ways."""
    found = given.array("bias", (6, 6), 6, 0.25)
    place = torch.arange(6)
    expected = -0.25 * (place[:, None] - place).abs()
    expect(
        bool((found - expected).abs().max() < 1e-6),
        "`bias(6, 0.25)` is not -0.25 times the distance of each two positions",
    )


def positions_longer(given: Answers) -> None:
    """`answers`, a dict from learned and sinusoidal to whether the model answers."""
    answers = given.value("answers")
    expect(
        isinstance(answers, dict) and set(answers) == {"learned", "sinusoidal"},
        "`answers` is not a dict with learned and sinusoidal",
    )
    learned, formula = (given.truth(f"`{one}`", answers[one]) for one in ("learned", "sinusoidal"))
    expect(not learned, "a table of 64 learned vectors has none for position 65")
    expect(formula, "the formula of sinusoids gives a vector to every position")


def transformer_bert(given: Answers) -> None:
    """`parameters`, a number."""
    # blocks, embeddings, a norm and a linear layer
    blocks = 12 * (12 * 768**2 + 13 * 768)
    total = blocks + (30_522 + 512 + 2) * 768 + 2 * 768 + 768**2 + 768
    slips = {
        blocks: "add the embeddings, the norm after them and the linear layer on top",
        total - 768**2 - 768: "the linear layer on top is missing",
        total - 2 * 768: "the norm after the embeddings is missing",
        total - 2 * 768 * 768: "the segment vectors are missing",
    }
    given.number("parameters", total, hint=f"the 12 blocks alone have {blocks:,}", slips=slips)


def transformer_tied(given: Answers) -> None:
    """`saved`, a number of parameters, and `share`, between 0 and 1."""
    # V D of the untied model
    saved = 50_257 * 768
    untied = 12 * (12 * 768**2 + 13 * 768) + 2 * saved + 1024 * 768 + 2 * 768
    given.number("saved", saved, hint="a tied head has no matrix of its own")
    given.number("share", saved / untied, digits=2, share=True, hint=f"the untied model has {untied:,}")


def transformer_norm(given: Answers) -> None:
    """`rate(update, warmup)`, the learning rate of an update, counted from 0."""
    for update, warmup in ((0, 1), (0, 100), (49, 100), (99, 100), (500, 100)):
        expected = 0.002 * min(1, (update + 1) / warmup)
        given.close(
            "rate", expected, update, warmup, hint="rise in equal steps to 0.002 at update number warmup"
        )


def transformer_longer(given: Answers) -> None:
    """`energy(query, key, t, s)`, q · k after query and key [D] are turned to their places t and s."""
    # energies of rotary positions depend on the distance alone, and on the distance
    chance = torch.Generator().manual_seed(1)
    query, key = torch.randn(2, 8, generator=chance, dtype=torch.float64)

    def energy(t: int, s: int) -> float:
        return given.plain("energy", query, key, t, s)

    for t, s in ((0, 3), (5, 2), (9, 9)):
        expect(
            abs(energy(t, s) - energy(t + 40, s + 40)) < 1e-4,
            f"`energy` differs at {t}, {s} and {t + 40}, {s + 40}; turn both by their own place",
        )
    expect(
        abs(energy(0, 3) - energy(0, 4)) > 1e-6, "`energy` is the same at every distance; turn query and key"
    )
    itself = given.plain("energy", query, query, 0, 0)
    expect(abs(energy(7, 7) - itself) > 1e-6, "`energy` does not use the key")


def recurrence_half(given: Answers) -> None:
    """`decay` and `left`, two numbers."""
    given.number("decay", 0.5 ** (1 / 1000), digits=4, hint="decay**1000 is one half")
    given.number("left", 2.0**-10, digits=1, share=True, hint="10,000 steps are ten half-lives")


def recurrence_parity(given: Answers) -> None:
    """`b`, the values of b_t for a zero and for a one, and `eigenvalue`, that along the key for a one."""
    b = given.tensor("b", (2,)).tolist()
    expect(abs(b[0]) < 1e-6, f"`b` has {b[0]:g} for a zero, which must leave the state as it is")
    expect(abs(b[1] - 2) < 1e-6, f"`b` has {b[1]:g} for a one; 1 - b must turn the sign and keep the size")
    given.number("eigenvalue", -1, hint="with a key of length 1 it is 1 - b")


def recurrence_keys(given: Answers) -> None:
    """`error(count)`, the mean error with that many random keys of 64 features."""
    errors = [given.plain("error", count) for count in (8, 32, 128)]
    rising = all(a < b for a, b in pairwise(errors))
    expect(rising and errors[0] < 0.5, f"`error` gives {errors}; eight keys of 64 features leave about 0.3")
    expect(
        errors[-1] > 0.8,
        f"`error(128)` gives {errors[-1]:.2f}; 128 keys in 64 features are no better than zeros",
    )


def pretraining_share(given: Answers) -> None:
    """`unharmed(share)`, the share of all tokens that BERT reads as they were."""
    for share in (0.15, 0.3, 1.0):
        hint = "of the tokens to predict, 80 % are masked, 10 % replaced and 10 % kept"
        given.close("unharmed", 1 - 0.9 * share, share, share=True, hint=hint)


def pretraining_mask(given: Answers) -> None:
    """`loss`, what it gets close to, in nats."""
    given.number("loss", 0, error=0.05, hint="position t may look at the answer, position t + 1")


def pretraining_mix(given: Answers) -> None:
    """`mix(layers, a, gamma)`, ELMo's mix [T, D] of layers [L, T, D] with scores a [L]."""
    layers = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1))
    for scores, gamma in (((0.0, 0.0, 0.0), 1.0), ((2.0, 0.0, -1.0), 0.5)):
        scale = torch.tensor(scores)
        found = given.array("mix", (4, 5), layers, scale, gamma)
        expected = gamma * torch.einsum("l,ltd->td", scale.softmax(0), layers)
        expect(
            bool((found.double() - expected.double()).abs().max() < 1e-5),
            "`mix` is not gamma times the sum of the layers weighted by the softmax of the scores",
        )


def payoff_both(given: Answers) -> None:
    """`mixed(first, second, share)`, nats per token of two lists of probabilities, mixed."""
    first, second = [0.5, 0.001, 0.25], [0.1, 0.5, 0.25]
    for share in (0.0, 0.3, 1.0):
        mixed = [share * one + (1 - share) * two for one, two in zip(first, second, strict=True)]
        expected = -sum(map(math.log, mixed)) / len(mixed)
        hint = "mix the probabilities, then take the mean of -ln; `share` belongs to the first list"
        given.close("mixed", expected, first, second, share, hint=hint)


def evaluating_baseline(given: Answers) -> None:
    """`beats(scores, baseline)`, whether the 95 % interval of the mean of seeds lies above the baseline."""
    # Student's t over seeds
    for scores, baseline, expected in (
        ((0.746, 0.757, 0.759), 0.744, False),  # 0.754 ± 0.017
        ((0.746, 0.757, 0.759), 0.736, True),
        ((0.70, 0.71, 0.69, 0.70, 0.70), 0.70, False),
        ((0.746, 0.757, 0.759, 0.754, 0.754), 0.744, True),  # 0.754 ± 0.006
    ):
        found = given.call("beats", list(scores), baseline)
        said = given.truth(f"`beats({list(scores)}, {baseline})`", found)
        expect(
            said == expected,
            f"`beats({list(scores)}, {baseline})` gives {found}; is the lower end of the 95 % interval "
            "of the mean, by Student's t, above the baseline?",
        )


def evaluating_holm(given: Answers) -> None:
    """`uncorrected`, `bonferroni` and `holm`, lists of the p-values that are significant, or how many are."""
    for name, expected, hint in (
        ("uncorrected", [0.012, 0.020, 0.030], "compare each with 0.05"),
        ("bonferroni", [0.012], "compare each with 0.05 / 4"),
        ("holm", [0.012], "sort; compare the k-th smallest with 0.05 / (4 - k + 1); stop at the first miss"),
    ):
        found = sorted(given.plain_number(name, one) for one in given.several(name))
        right = found in (expected, [len(expected)])
        expect(right, f"`{name}` is {found}, which is not right: {hint}")


def evaluating_seeds(given: Answers) -> None:
    """`seeds`, a number."""
    # 2 sqrt(2 / k) = 1
    given.number("seeds", 8, hint="a difference of two means has the standard error sigma * sqrt(2 / k)")
