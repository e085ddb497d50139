"""A batch of sequences and their targets."""

from typing import Any, NamedTuple

import torch
from torch import Tensor


class LabelBatch(NamedTuple):
    """A batch for weft.models.Predictor."""

    source: Any  # [B, S] tokens, or another input of the embedding; has to(device)
    source_mask: Tensor  # [B, S] bool
    target: Tensor  # [B] classes, or [B, S] tags
    target_tokens: int  # real targets

    def to(self, device: torch.device) -> "LabelBatch":
        """The same batch on a device."""
        return LabelBatch(
            self.source.to(device), self.source_mask.to(device), self.target.to(device), self.target_tokens
        )

    def rows(self, chosen: slice) -> "LabelBatch | None":
        """Some rows with the batch's padding; None if the source is not a single tensor."""
        if not isinstance(self.source, Tensor):
            return None
        mask, target = self.source_mask[chosen], self.target[chosen]
        return LabelBatch(
            self.source[chosen], mask, target, int(mask.sum()) if target.dim() > 1 else len(target)
        )
