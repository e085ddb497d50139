"""Right answers in usual forms pass, wrong ones get a sentence that helps: a table for every exercise.

Each exercise's own solution in docs/course/solutions.py is tried too, in tests/docs/test_notebooks.py.
"""

import ast
import itertools
import re
from pathlib import Path

import pytest

from tests.docs.test_notebooks import answers, defined
from tests.docs.tools import tool
from weft.errors import ConfigError
from weft.testing import check_exercise, exercises
from weft.testing.exercises import EXERCISES
from weft.testing.translations import LANGUAGES

CHECKS = Path(exercises.__file__).parent
DATA = {"the hen sees the dog", "the cat hears", "the {0} {1} the {2}"}
DATA |= {"one to many", "many to one", "not good", "not bad"}
DATA |= {"Language of the hints; or set COURSE_LANGUAGE (LANG is not read)."}
"""Strings of the checks that no student reads, and the help of the command, which is English."""

SAYING = [
    f"{name}.py" for name in ("exercise_answers", "exercises_recurrent", "exercises_attention", "exercises")
]
SAYING += ["../commands/check.py"]
OTHERS = {"No such file or directory", "Is a directory", "Permission denied", "invalid syntax"}
"""Messages of Python and the operating system."""

RIGHT = {
    "tokens-perplexity": [
        "import numpy as np\nperplexity = lambda probs: np.exp(-np.log(probs).mean())",
        "import torch\nperplexity = lambda probs: torch.tensor(probs).log().mean().neg().exp()",
    ],
    "tokens-kneser": ["prob = 0.279", "prob = 0.28", "prob = 0.2792", "prob = 0.27917", "prob = '0,279'"],
    "tokens-merges": ["word = '▁newest'", "word = 'Newest'", "word = '_newest'"],
    "vectors-softmax": ["softmax, negative = 5e6, 600", "softmax, negative = '5 000 000', '600'"],
    "vectors-bag": ["votes = {('not', 'good'): -3, ('not', 'bad'): 3, 'good': 1, 'bad': -1.0}"],
    "vectors-window": [
        "def pairs(words, window):\n    for i, a in enumerate(words):\n"
        "        for j, b in enumerate(words):\n"
        "            if 0 < abs(i - j) <= window:\n                yield [a, b]"
    ],
    "vectors-two": ["lowest = '50 %'", "lowest = 1 / 2", "lowest = '1/2'", "lowest = '0,5'", "lowest = 50"],
    "elman-delay": ["W, U, b = [[1], [0], [0]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 0, 0]"],
    "elman-shapes": [
        "shapes = ('Aligned', 'aligned', 'unaligned', 'one-to-many', 'many_to_one')",
    ],
    "elman-sigmoid": ["sigmoid, tanh = '1/4', 1.0", "sigmoid, tanh = '0.25', '1'"],
    "elman-jordan": ["prob = 0.4987", "prob = '50 %'"],
    "bptt-number": ["steps = 135.0", "steps = '135'"],
    "bptt-scalar": [
        "state, left = 0.9575, 1.6e-08",
        "state, left = 0.96, 2e-8",
        "state, left = 0.957504, 1.6248e-08",
    ],
    "bptt-every": [
        "bound = 0.001",
        "bound = 0.00098",
        "bound = 2**-10",
        "bound = '0.1 %'",
        "bound = 0.000977",
    ],
    "lstm-parameters": [
        "lstm, elman = '240 800', '60 200'",
        "lstm, elman = '240,800', '60,200'",
        "lstm, elman = 240_800.0, 60_200.0",
        "import numpy as np\nlstm, elman = np.int64(240800), np.int64(60200)",
    ],
    "lstm-backward": [
        "zero, factor = ['i', 'f', 'c'], 1",
        "zero, factor = ('F', 'I', 'C'), 1.0",
        "zero, factor = 'i, f, c', '1'",
    ],
    "lstm-bias": ["import torch\nleft = lambda bias, steps: torch.tensor(bias).sigmoid() ** steps"],
    "stacks-parameters": [
        "concatenated, summed = '372 800', 292_800",
        "concatenated, summed = 372800.0, 292800.0",
    ],
    "stacks-parallel": ["def steps(n, t, both):\n    if both:\n        return n * t\n    return t + n - 1.0"],
    "encdec-chain": ["mean, mode = 9.93, 1", "mean, mode = 1 / 0.1, 1.0"],
    "encdec-sampling": [
        "half, tenth = 461, 680",
        "half, tenth = 460, 681",
        "half, tenth = 460.5, 680.2",
        "half, tenth = '460,5', '680,2'",
    ],
    "encdec-tags": ["pairs, unseen = '6', 2.0"],
    "encdec-reverse": [
        "import numpy as np\ndef distances(n, r):\n    return 2 * np.arange(n) + 1 if r else [n] * n"
    ],
    "attention-scaled": [
        "moments = lambda d: [0.0, float(d)]",
        "import torch\ndef moments(d):\n    torch.manual_seed(1)\n"
        "    x = (torch.randn(5000, d) * torch.randn(5000, d)).sum(1)\n    return x.mean(), x.var()",
    ],
    "attention-queries": [
        "query, mean = (1.5, 0), (0, 0)",
        "import torch\nquery, mean = torch.tensor([9., 0]), torch.zeros(2)",
    ],
    "attention-uniform": ["weights = lambda mask: (mask.double().log()).softmax(1)"],
    "decoding-alpha": ["alpha = 0.07", "alpha = 0.067", "alpha = 0.0673", "alpha = '0,067'"],
    "decoding-coin": [
        "sequence, heads, prob = 0.00004, 12, 0.18",
        "sequence, heads, prob = 3.66e-5, 12, 0.1797",
        "sequence, heads, prob = '0.004 %', 12.0, '18 %'",
        "sequence, heads, prob = 3.656e-5, '12', 0.183",
    ],
    "decoding-top-p": [
        "import numpy as np\nkept = lambda q, p: np.searchsorted(np.cumsum(sorted(q)[::-1]), p) + 1"
    ],
    "self-attention-cost": ["parameters, one_head, eight_heads = '1 050 624', 1e6, '8,000,000'"],
    "self-attention-similar": ["import torch\nattend = lambda x: torch.softmax(x @ x.mT, 1) @ x"],
    "self-attention-pixels": [
        "convolution = lambda n, c: 9 * n * c**2\nblock = lambda n, c: n * c * (2 * c + n)\nequal = '1792'"
    ],
    "positions-row": [
        "row = (0.14, -0.99, 0.3, 0.96)",
        "import numpy as np\nrow = np.array([0.141, -0.99, 0.296, 0.955])",
    ],
    "positions-alibi": [
        "import numpy as np\nbias = lambda n, m: -m * abs(np.arange(n)[:, None] - np.arange(n))"
    ],
    "positions-longer": [
        "answers = {'learned': 'no', 'sinusoidal': 'yes'}",
        "answers = {'sinusoidal': 1, 'learned': 0}",
    ],
    "transformer-bert": [
        "parameters = '109 482 240'",
        "parameters = 109_482_240.0",
        "parameters = '109,482,240'",
    ],
    "transformer-tied": [
        "saved, share = '38 597 376', 24",
        "saved, share = 38_597_376, 0.24",
        "saved, share = '38,597,376', '24 %'",
        "saved, share = 38_597_376, 0.2367",
        "saved, share = 38_597_376, '23,7 %'",
        "saved, share = 38_597_376, 23.7",
    ],
    "transformer-norm": ["rate = lambda n, w: min((n + 1) * 0.002 / w, 2e-3)"],
    "recurrence-half": [
        "decay, left = 0.99931, 0.001",
        "decay, left = 0.9993, '0.1 %'",
        "decay, left = 0.999307, 0.00098",
        "decay, left = 2 ** (-1 / 1000), 1 / 1024",
    ],
    "recurrence-parity": [
        "b, eigenvalue = (0.0, 2.0), '-1'",
        "import torch\nb, eigenvalue = torch.tensor([0, 2]), -1.0",
    ],
    "pretraining-share": [
        "unharmed = lambda share: 100 - 90 * share",
        "unharmed = lambda s: 1 - 0.8 * s - 0.1 * s",
    ],
    "pretraining-mask": ["loss = 0.003", "loss = '0'"],
    "payoff-both": [
        "import numpy as np\nmixed = lambda a, b, s: -np.log(s * np.array(a) + (1 - s) * np.array(b)).mean()"
    ],
    "evaluating-baseline": [
        "import scipy.stats, numpy as np\ndef beats(s, b):\n"
        "    half = scipy.stats.t.ppf(0.975, len(s) - 1) * np.std(s, ddof=1)"
        "\n    return 'yes' if np.mean(s) - half / len(s) ** 0.5 > b else 'no'"
    ],
    "evaluating-holm": [
        "uncorrected, bonferroni, holm = {0.03, 0.012, 0.02}, (0.012,), [0.012]",
        "uncorrected, bonferroni, holm = 3, 1, 1",
        "uncorrected, bonferroni, holm = '0.012, 0.020, 0.030', 0.012, '0.012'",
    ],
    "evaluating-seeds": ["seeds = 8.0", "seeds = '8'"],
}
"""Code that defines a right answer, in other forms than that of solutions.py."""

WRONG = [
    ("tokens-perplexity", "perplexity = lambda probs: 2 ** (sum(probs) / len(probs))", "exp of the mean"),
    ("tokens-kneser", "prob = 0.3", "give more digits"),
    ("tokens-kneser", "prob = 0.27", "three words follow"),
    ("tokens-kneser", "prob = 0.283", "three words follow"),
    ("tokens-merges", "word = 'lowest'", "most frequent pairs"),
    ("vectors-softmax", "softmax, negative = 5e6, 500", "K = 5"),
    ("vectors-bag", "votes = {'good': 1, 'bad': -1, 'not': -2}", "give its pair a vote"),
    ("vectors-two", "lowest = 0", "never negative"),
    ("elman-shapes", "shapes = ['aligned'] * 5", "place 3"),
    ("elman-sigmoid", "sigmoid, tanh = 0.5, 1", "one half"),
    ("elman-jordan", "prob = 1", "random bit"),
    ("bptt-number", "steps = 134", "whole n"),
    ("bptt-scalar", "state, left = 1, 2e-8", "give more digits"),
    ("bptt-scalar", "state, left = 0.9575, 1024", "each step multiplies"),
    ("bptt-every", "bound = 0.0005", "0.5\\*\\*11"),
    ("lstm-parameters", "lstm, elman = 60_200, 60_200", "an LSTM has four gates"),
    ("lstm-parameters", "lstm, elman = 241_600, 60_200", "PyTorch keeps two vectors of biases"),
    ("lstm-parameters", "lstm, elman = 240_000, 60_200", "a bias in every gate"),
    ("lstm-parameters", "lstm, elman = 240_800, 60_000", "each unit also has a bias"),
    ("lstm-parameters", "lstm, elman = 241_000, 60_200", "give more digits"),
    ("lstm-parameters", "lstm, elman = 'many', 60_200", "expected a number"),
    ("lstm-backward", "zero, factor = ['i', 'f'], 1", "lacks c"),
    ("lstm-backward", "zero, factor = 'ifco', 1", "is not a set of the letters"),
    ("lstm-backward", "zero, factor = {'i', 'f', 'c', 'o'}, 1", "the output gate learns"),
    ("lstm-bias", "left = lambda bias, steps: bias**steps", "sigmoid"),
    ("stacks-parameters", "concatenated, summed = 372_800, 372_800", "reads 100 features"),
    ("encdec-chain", "mean, mode = 9, 1", "geometric"),
    ("encdec-chain", "mean, mode = 10, 10", "0.9"),
    ("encdec-sampling", "half, tenth = 46, 680", "e\\*\\*\\(n / k\\)"),
    ("encdec-tags", "pairs, unseen = 9, 2", "ordered pairs"),
    ("attention-scaled", "moments = lambda d: (0, d**0.5)", "mean 0 and variance 1"),
    ("attention-queries", "query, mean = (0, 2), (0, 0)", "let it point"),
    ("attention-queries", "query, mean = (2, 0), (1, 1)", "not equal"),
    ("attention-uniform", "weights = lambda mask: mask / mask.shape[1]", "not equal at the real positions"),
    ("decoding-alpha", "alpha = 0.7", "equal to"),
    ("decoding-coin", "sequence, heads, prob = 0.00004, 20, 0.18", "binomial"),
    ("decoding-coin", "sequence, heads, prob = 0.00004, 12, 0.2", "give more digits"),
    ("self-attention-cost", "parameters, one_head, eight_heads = 4 * 512**2, 1e6, 8e6", "with biases"),
    ("self-attention-cost", "parameters, one_head, eight_heads = 1_050_624, 1e6, 1e6", "own energies"),
    ("positions-row", "row = (0.14, -0.99, 0.03, 1.0)", "100\\*\\*"),
    ("positions-alibi", "import torch\nbias = lambda n, m: -m * torch.ones(n, n)", "distance"),
    ("positions-longer", "answers = {'learned': 'yes', 'sinusoidal': 'yes'}", "none for position 65"),
    ("positions-longer", "answers = {'learned': 'maybe', 'sinusoidal': 'yes'}", "expected True or False"),
    ("transformer-bert", "parameters = 85_054_464", "add the embeddings"),
    ("transformer-bert", "parameters = 108e6", "blocks alone"),
    ("transformer-bert", "parameters = 109e6", "give more digits"),
    ("transformer-tied", "saved, share = 38_597_376, 0.31", "untied"),
    ("transformer-tied", "saved, share = 38_597_376, 0.2", "give more digits"),
    ("transformer-norm", "rate = lambda update, warmup: 0.002", "rise in equal steps"),
    ("recurrence-half", "decay, left = 0.999, 0.001", "give more digits"),
    ("recurrence-half", "decay, left = 0.5, 0.001", "one half"),
    ("recurrence-half", "decay, left = 0.99931, 0.01", "ten half-lives"),
    ("recurrence-parity", "b, eigenvalue = (0, 1), 0", "turn the sign"),
    ("recurrence-parity", "b, eigenvalue = (0, 2), 1", "1 - b"),
    ("pretraining-share", "unharmed = lambda share: 1 - share", "10 % replaced"),
    ("pretraining-mask", "loss = 1.0", "look at the answer"),
    ("payoff-both", "mixed = lambda a, b, s: 0.0", "mix the probabilities"),
    ("evaluating-baseline", "beats = lambda scores, b: sum(scores) / len(scores) > b", "Student's t"),
    ("evaluating-holm", "uncorrected, bonferroni, holm = 3, 1, 2", "first miss"),
    ("evaluating-holm", "uncorrected, bonferroni, holm = [0.012], 1, 1", "compare each with 0.05"),
    ("evaluating-seeds", "seeds = 32", "standard error"),
]
"""An exercise, a wrong answer, and what the sentence says."""


@pytest.mark.parametrize(("name", "code"), [(name, code) for name, codes in RIGHT.items() for code in codes])
def test_a_right_answer_in_a_usual_form(name: str, code: str) -> None:
    check_exercise(name, defined(code))


@pytest.mark.parametrize(("name", "code", "hint"), WRONG)
def test_a_wrong_answer_gets_a_hint(name: str, code: str, hint: str) -> None:
    with pytest.raises(AssertionError, match=hint) as wrong:
        check_exercise(name, defined(code))
    assert "\n" not in str(wrong.value)


def test_the_table_is_large() -> None:
    assert set(RIGHT) <= set(EXERCISES) == set(answers())
    assert len(EXERCISES) == 63
    assert sum(map(len, RIGHT.values())) + len(EXERCISES) >= 99 + 63
    functions = {name for name, one in EXERCISES.items() if re.search(r"`\w+\(", one.asks)}
    objects = {"attention-scores", "bptt-relu", "lstm-1997", "gru-keep", "encdec-both"}
    assert set(EXERCISES) - functions - objects <= set(RIGHT)


def said() -> set[str]:
    """Every sentence of the checks, with {0}, {1}, … for what they fill in."""
    found = {"Define {0}", *OTHERS, *(one.asks for one in EXERCISES.values())}
    for file in SAYING:
        tree = ast.parse((CHECKS / file).read_text("utf-8"))
        quoted = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        quoted |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        for node in ast.walk(tree):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            if id(node) not in quoted and all(
                isinstance(one, ast.Constant | ast.FormattedValue) for one in parts
            ):
                holes = itertools.count()
                found.add(
                    "".join(
                        str(one.value) if isinstance(one, ast.Constant) else f"{{{next(holes)}}}"
                        for one in parts
                    )
                )
    words = {text: re.sub(r"`[^`]*`", "", text) for text in found - DATA if " " in text}
    return {text for text, rest in words.items() if re.search(r"[a-z]{3}|\ban?\b", rest)}


@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {"en"}))
def test_every_sentence_has_a_translation_with_the_same_holes(language: str) -> None:
    words = tool("languages").messages(tool("languages").catalog(language, "checks"))
    assert set(words) == said()
    for text, other in words.items():
        assert sorted(re.findall(r"\{\d\}", other)) == sorted(re.findall(r"\{\d\}", text)), text


@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {"en"}))
def test_a_hint_is_in_the_language_as_a_whole(language: str) -> None:
    for name, code, _ in WRONG:
        hints = []
        for spoken in ("en", language):
            with pytest.raises(AssertionError) as wrong:
                check_exercise(name, defined(code), language=spoken)
            hints.append(re.sub(r"`[^`]*`|'[^']*'", "", str(wrong.value)))
        left = set(re.findall(r"[A-Za-z]{2,} [a-z]{2,}", hints[1])) & set(
            re.findall(r"[A-Za-z]{2,} [a-z]{2,}", hints[0])
        )
        assert not left, hints


@pytest.mark.parametrize("language", ["hr", "HR", "hr_HR.UTF-8"])
def test_a_hint_in_croatian(language: str) -> None:
    with pytest.raises(
        AssertionError, match=r"^`lstm` je 241 600, a to nije točno: PyTorch čuva dva vektora pomaka"
    ):
        check_exercise("lstm-parameters", {"lstm": 241_600, "elman": 60_200}, language=language)
    with pytest.raises(ConfigError, match="expected en, es, hr, pl, ru, got 'de'"):
        check_exercise("lstm-parameters", {}, language="de")
