"""A wrong call of any search is one sentence that says what was expected."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from weft.errors import WeftError
from weft.search import beam_search, diverse_search, greedy_search, sample

BIGRAM = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4], [0.4, 0.5, 0.1]]).log()
SEARCHES: dict[str, Any] = {
    "greedy": greedy_search,
    "beam": partial(beam_search, width=2),
    "diverse": partial(diverse_search, width=2, groups=2),
    "sample": sample,
}
FIRST = torch.tensor([0, 0])
TOKENS = r"^first: expected a tensor \[sources\] of int64, a token for each source, got "
LIMIT = "^max_length: expected a whole number of at least 1, got "
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "numbers": ({"first": FIRST.float()}, TOKENS + r"\[2\] of torch.float32"),
    "two axes": ({"first": FIRST[:, None]}, TOKENS + r"\[2, 1\] of torch.int64"),
    "one token": ({"first": FIRST[0]}, TOKENS + r"\[\] of torch.int64"),
    "a list": ({"first": [0, 0]}, TOKENS + "list"),
    "a mask": ({"first": FIRST > 0}, TOKENS + r"\[2\] of torch.bool"),
    "half a token": ({"max_length": 2.5}, LIMIT + "2.5"),
    "half of some": ({"max_length": torch.tensor([2.0, 3.0])}, LIMIT + "tensor"),
    "words": ({"max_length": "3"}, LIMIT + "'3'"),
    "nothing": ({"max_length": None}, LIMIT + "None"),
    "half an end": ({"eos": 2.5}, "^eos: expected a token of the model's vocabulary, 0 to 2, got 2.5"),
    "a word for an end": ({"eos": "a"}, "^eos: expected a token of the model's vocabulary, .*got '?a"),
    "no step": ({"step": None}, "^step: expected a function .*, got nothing"),
    "a step without a state": ({"step": lambda token, state: BIGRAM[token]}, "^step: .*, got Tensor"),
    "a step of three": ({"step": lambda token, state: (BIGRAM[token], state, 1)}, "^step: .*, got tuple"),
    "a step of lists": ({"step": lambda token, state: ([[0.1]], state)}, "^step: expected a function"),
    "a step of whole numbers": ({"step": lambda t, s: (BIGRAM[t].long(), s)}, "^step: expected a function"),
    "other rows": (
        {"state": (torch.zeros(3, 1), None)},
        "^state: expected one of 2 rows, as first has, got 3",
    ),
}


def step(token: Tensor, state: Any) -> tuple[Tensor, Any]:
    return BIGRAM[token], state


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_one_sentence(search: str, case: str) -> None:
    given, words = WRONG[case]
    call = {"step": step, "state": None, "first": FIRST, "max_length": 3, "eos": 2, **given}
    with pytest.raises(WeftError, match=words):
        SEARCHES[search](*[call.pop(name) for name in ("step", "state", "first")], **call)


def test_without_a_generator_samples_follow_torchs_seed() -> None:
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(sample(step, None, FIRST, eos=2, max_length=9, count=5).tokens.tolist())
    assert found[0] == found[1] != found[2]
    with pytest.raises(WeftError, match=r"^width: expected a whole number of at least 1, got 2.5"):
        beam_search(step, None, FIRST, eos=2, max_length=3, width=2.5)  # type: ignore[arg-type]
    with pytest.raises(WeftError, match=r"^count: expected a whole number of at least 1, got 2.5"):
        sample(step, None, FIRST, eos=2, max_length=3, count=2.5)  # type: ignore[arg-type]
