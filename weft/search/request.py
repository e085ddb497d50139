"""A search as compiled code and recorded steps take it. Read next: compiled.py, captured.py."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from weft.search.offered import Narrowing
from weft.search.rules import Rule


class SamplingRule(NamedTuple):
    """How `sample` draws tokens."""

    how: Narrowing
    generator: torch.Generator


class SearchRequest(NamedTuple):
    """What is searched, as `beam` takes it; a beam has `norm`, sampling `draw`, greedy search neither."""

    first: Tensor  # [B]
    limits: Tensor  # [B]
    eos: int
    banned: Sequence[int]
    width: int = 1
    nbest: int = 1
    kept: int = 1  # finished hypotheses of a source
    enough: int = 1
    stop: str = "full"
    norm: Tensor | None = None  # [T + 1]
    draw: SamplingRule | None = None
    rules: Sequence[Rule] = ()
    recorded: bool = False  # as CUDA graphs (captured.py)
