"""The settings that every search shares, and the search that they ask for.

Sections `decoding` of tasks have these among their own. Read next: greedy.py, sampling.py, beam.py.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.beam import beam
from weft.search.greedy import greedy
from weft.search.hypotheses import Hypotheses
from weft.search.sampling import sample
from weft.search.step import Step
from weft.setting_types import check_fields
from weft.tree import State


class SearchSettings(Protocol):
    """How texts are searched."""

    @property
    def search(self) -> Literal["beam", "greedy", "sample"]:
        """The kind of search."""

    @property
    def beam(self) -> int:
        """Width of the beam; 1 is greedy."""

    @property
    def nbest(self) -> int:
        """Texts for each source."""

    @property
    def length_penalty(self) -> float:
        """Of beam search: a score is divided by the length to this power."""

    @property
    def temperature(self) -> float:
        """Of sampling."""

    @property
    def top_k(self) -> int:
        """Of sampling: the k likeliest tokens are kept; 0 keeps every token."""

    @property
    def top_p(self) -> float:
        """Of sampling: the likeliest tokens of this probability are kept; 1 keeps every token."""

    @property
    def seed(self) -> int:
        """Of sampling."""


def check_search(settings: SearchSettings) -> None:
    """Check that settings are in the ranges that their fields declare, and fit together.

    Args:
        settings: a dataclass of those of a search, and others.

    Raises:
        ConfigError: one is out of its range; more texts than the search finds.
    """
    check_fields(settings)
    if settings.search == "beam" and settings.nbest > settings.beam:
        raise ConfigError(
            f"nbest: expected at most the beam width {settings.beam}, got {settings.nbest}; "
            f"raise beam to {settings.nbest}"
        )
    if settings.search == "greedy" and settings.nbest > 1:
        raise ConfigError(
            f"nbest: expected 1 for greedy search, got {settings.nbest}; sample, or use beam search"
        )


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
    """The texts that these settings find.

    Args:
        settings: how to search.
        step, state, first, eos, max_length, banned: as `greedy` takes them.
        chance: of sampling; by default a new generator with the seed of the settings.
    """
    if settings.search == "greedy":
        return greedy(step, state, first, eos=eos, max_length=max_length, banned=banned)
    if settings.search == "beam":
        return beam(
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
