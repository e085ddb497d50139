"""A language model computed directly in float64, without the server. Read next: test_scored.py."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from weft.run import open_run
from weft.text.vocabulary import EOS


class Exact:
    """A run's model in float64.

    Args:
        run: a run of the task language.
    """

    def __init__(self, run: Path) -> None:
        opened = open_run(run, device="cpu")
        self.model = opened.model.double()
        self.vocabulary = opened.pipeline.vocabulary

    @torch.no_grad()
    def logp(self, row: Sequence[int]) -> Tensor:
        """[N, V] of the token after each of a row, read from its beginning."""
        state = self.model.start(None, torch.ones(1, 1, dtype=torch.bool))
        rows = []
        for token in row:
            logp, state = self.model.step(torch.tensor([token]), state)
            rows.append(logp[0])
        return torch.stack(rows)

    def line(self, text: str) -> list[int]:
        """A line as the model reads it."""
        return [EOS, *self.vocabulary.encode(text)]
