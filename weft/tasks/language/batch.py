"""A batch of pieces of text. Read next: stream.py, which chooses where they begin."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.tasks.shared.writing.batch import pad
from weft.text.vocabulary import EOS


class ProseBatch(NamedTuple):
    """Inputs and targets for a weft.models.Generator without an encoder."""

    target_in: Tensor  # [B, T] the token before each target; </s> before the first of a line
    target_out: Tensor  # [B, T] int64
    target_mask: Tensor  # [B, T] bool
    target_tokens: int
    continues: bool = False  # whether it begins where the previous batch ended

    @property
    def source(self) -> Tensor:
        """Unused: nothing is read first."""
        return self.target_in

    @property
    def source_mask(self) -> Tensor:
        """See `source`: its rows are those of the batch."""
        return self.target_mask

    def to(self, device: torch.device) -> "ProseBatch":
        """The same batch on a device."""
        first, second, third = (part.to(device) for part in self[:3])
        return ProseBatch(first, second, third, self.target_tokens, self.continues)

    def rows(self, chosen: slice) -> "ProseBatch":
        """Some rows, with the batch's padding."""
        first, second, third = (part[chosen] for part in self[:3])
        return ProseBatch(first, second, third, int(third.sum()), self.continues)


def cut(tokens: np.ndarray, starts: np.ndarray, length: int, *, continues: bool = False) -> ProseBatch:
    """Pieces of one length.

    Args:
        tokens: [1 + N].
        starts: [B] where the pieces begin.
        length: T.
        continues: see ProseBatch.

    Example:
        >>> cut(np.arange(9), np.array([0, 4]), 3).target_out.tolist()
        [[1, 2, 3], [5, 6, 7]]
    """
    places = starts[:, None] + np.arange(length + 1)
    rows = torch.from_numpy(tokens[places].astype(np.int64))
    mask = torch.ones(len(starts), length, dtype=torch.bool)
    return ProseBatch(rows[:, :-1], rows[:, 1:], mask, mask.numel(), continues)


def collate_lines(lines: Sequence[np.ndarray | list[int]]) -> ProseBatch:
    """Whole lines, as inputs and as targets with their ends."""
    before, _ = pad([[EOS, *line] for line in lines])
    after, mask = pad([[*line, EOS] for line in lines])
    return ProseBatch(before, after, mask, int(mask.sum()))
