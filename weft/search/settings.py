"""The search that settings ask for.

Read next: offered.py, the settings; greedy.py, sampling.py, beam.py.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import Hypotheses
from weft.search.offered import SearchSettings
from weft.search.sampling import draw
from weft.search.step import Rule, Step
from weft.tree import State


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
