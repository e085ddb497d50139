"""The search that settings ask for, and a budget of tokens.

A recipe may be untrusted: `max_extra: 100000000` must neither exhaust the memory nor run for days. Read next:
offered.py, the settings; greedy.py, sampling.py, beam.py.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from weft.search import rules
from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import Hypotheses
from weft.search.offered import Decoding, SearchSettings
from weft.search.rules import Rule
from weft.search.sampling import draw
from weft.search.step import Step
from weft.tree import State

TOKENS = 2**18
"""Maximum of sources * hypotheses per source * maximum tokens per hypothesis in one batch."""


def search(
    settings: SearchSettings,
    step: Step,
    state: State,
    first: Tensor,
    *,
    eos: int,
    max_length: int | Tensor,
    banned: Sequence[int],
    asked: Sequence[Rule] = (),
    chance: torch.Generator | None = None,
    **beams: Any,
) -> Hypotheses:
    """The texts that these settings find; `asked` are rules, and `beams` is what only a beam takes."""
    plain: dict[str, Any] = {
        "eos": eos, "max_length": max_length, "banned": banned, "rules": asked,
        "recorded": settings.cuda_graphs,
    }  # fmt: skip
    if settings.search == "greedy":
        return greedy_search(step, state, first, **plain)
    if settings.search == "beam":
        width, penalty = settings.beam, settings.length_penalty
        plain |= {"width": width, "nbest": settings.nbest, "length_penalty": penalty, **beams}
        return beam_search(step, state, first, **plain)
    generator = chance or torch.Generator(first.device).manual_seed(settings.seed)
    return draw(step, state, first, settings, count=settings.width(), generator=generator, **plain)


def decoding_rules(how: Decoding, eos: int, prefix: Sequence[int] = (), *, free: int = 0) -> list[Rule]:
    """The rules that these settings ask for, after the tokens of their prefix."""
    found: list[Rule] = [rules.prefix(prefix, free=free)] if prefix else []
    if how.min_length:
        found.append(rules.least_length(how.min_length, eos))
    if how.no_repeat_ngram:
        found.append(rules.no_repeat(how.no_repeat_ngram))
    return found


def most_tokens(width: int) -> int:
    """Maximum tokens of a hypothesis, given the number of hypotheses per source."""
    return max(1, TOKENS // width)


def most_rows(width: int, longest: int) -> int:
    """Maximum number of sources in one batch."""
    return max(1, TOKENS // (width * longest))
