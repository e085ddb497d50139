"""The settings that every search shares, their ranges, a budget of tokens, and the search that they ask for.

Sections `decoding` of tasks have these among their own. A recipe may be untrusted: `max_extra: 100000000`
must neither exhaust the memory nor run for days. Read next: greedy.py, sampling.py, beam.py.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import Hypotheses
from weft.search.sampling import sample
from weft.search.step import Step
from weft.setting_types import Bounds, Whole, check_fields
from weft.tree import State

TOKENS = 2**18
"""Maximum of sources * hypotheses per source * maximum tokens per hypothesis in one batch."""

BeamWidth = Annotated[int, Bounds(ge=1, le=1_000)]
"""Hypotheses kept, or texts written, for a source."""

BatchRows = Annotated[int, Bounds(ge=1, le=10_000)]
"""Sources in a batch."""

TokenCount = Annotated[int, Bounds(ge=0, le=100_000)]
OneOrMore = Annotated[int, Bounds(ge=1, le=100_000)]
LengthPenalty = Annotated[float, Bounds(ge=0, le=10)]
Temperature = Annotated[float, Bounds(gt=0, lt=math.inf)]
TopP = Annotated[float, Bounds(gt=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How texts are searched.

    Args:
        search: beam, greedy or sample.
        beam: hypotheses kept; 1 is greedy.
        nbest: texts for each source.
        length_penalty: of beam search: a hypothesis's log-probability is divided by its length to this power;
            0 favours short ones.
        temperature, top_k, top_p: of sampling; top_k 0 and top_p 1 keep every token.
        seed: of sampling.
        batch_rows: sources searched at once.

    Raises:
        ConfigError: one is out of its range; more texts than the search finds.
    """

    search: Literal["beam", "greedy", "sample"] = "beam"
    beam: BeamWidth = 5
    nbest: BeamWidth = 1
    length_penalty: LengthPenalty = 1.0
    temperature: Temperature = 1.0
    top_k: Whole = 0
    top_p: TopP = 1.0
    seed: Whole = 1
    batch_rows: BatchRows = 64

    def __post_init__(self) -> None:
        check_fields(self)
        if self.search == "beam" and self.nbest > self.beam:
            raise ConfigError(
                f"nbest: expected at most the beam width {self.beam}, got {self.nbest}; "
                f"raise beam to {self.nbest}"
            )
        if self.search == "greedy" and self.nbest > 1:
            raise ConfigError(
                f"nbest: expected 1 for greedy search, got {self.nbest}; sample, or use beam search"
            )


def check_sampled(search: str, given: Mapping[str, object]) -> None:
    """Check that settings of sampling are given for a search that samples."""
    unused = [name for name in ("temperature", "top_k", "top_p", "seed") if name in given]
    if search != "sample" and unused:
        raise ConfigError(f"{unused[0]}: applies to sampling, but the search is {search}; add --sample")


def search(
    settings: SearchSettings,
    step: Step,
    state: State,
    first: Tensor,
    *,
    eos: int,
    max_length: int | Tensor,
    banned: Sequence[int],
    chance: torch.Generator | None = None,
) -> Hypotheses:
    """The texts that these settings find."""
    if settings.search == "greedy":
        return greedy_search(step, state, first, eos=eos, max_length=max_length, banned=banned)
    if settings.search == "beam":
        return beam_search(
            step,
            state,
            first,
            eos=eos,
            max_length=max_length,
            width=settings.beam,
            nbest=settings.nbest,
            length_penalty=settings.length_penalty,
            banned=banned,
        )
    if settings.search == "sample":
        return sample(
            step,
            state,
            first,
            eos=eos,
            max_length=max_length,
            temperature=settings.temperature,
            top_k=settings.top_k or None,
            top_p=settings.top_p if settings.top_p < 1 else None,
            count=settings.nbest,
            banned=banned,
            generator=chance or torch.Generator(first.device).manual_seed(settings.seed),
        )
    raise ValueError(f"search {settings.search!r}")


def most_tokens(width: int) -> int:
    """Maximum tokens of a hypothesis, given the number of hypotheses per source."""
    return max(1, TOKENS // width)


def most_rows(width: int, longest: int) -> int:
    """Maximum number of sources in one batch."""
    return max(1, TOKENS // (width * longest))
