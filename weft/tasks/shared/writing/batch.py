"""A batch of sequence pairs: token lists become padded tensors with masks."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.text.vocabulary import EOS, PAD, SOS


class PairBatch(NamedTuple):
    """Sources and targets for a weft.models.Generator."""

    source: Tensor  # [B, S] int64, padded
    source_mask: Tensor  # [B, S] bool
    target_in: Tensor  # [B, T] <sos> w_1 .. w_n
    target_out: Tensor  # [B, T] w_1 .. w_n <eos>
    target_mask: Tensor  # [B, T] bool
    target_tokens: int  # real target positions, with <eos>
    joined: bool = False  # whether a row has more than one pair

    def to(self, device: torch.device) -> "PairBatch":
        """The same batch on a device."""
        tensors = [part.to(device) for part in self[:5]]
        return PairBatch(
            tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], self.target_tokens, self.joined
        )

    def rows(self, chosen: slice) -> "PairBatch | None":
        """Some rows, with the batch's padding; None if pairs are joined, because rows are not pairs then."""
        if self.joined:
            return None
        tensors = [part[chosen] for part in self[:5]]
        count = int(tensors[4].sum())
        return PairBatch(tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], count)


def pad(rows: Sequence[Sequence[int] | np.ndarray], width: int | None = None) -> tuple[Tensor, Tensor]:
    """Token lists to [B, S] int64 and their mask [B, S].

    Args:
        rows: tokens; an empty row gets one padding symbol that counts as real, so that no row is
            without a real position.
        width: S; the longest row by default.

    Example:
        >>> pad([[7, 8], [9]])[0].tolist()
        [[7, 8], [9, 0]]
    """
    lengths = [max(1, len(row)) for row in rows]
    width = width or max(lengths)
    tokens = np.full((len(rows), width), PAD, dtype=np.int64)
    for row, numbers in enumerate(rows):
        tokens[row, : len(numbers)] = numbers
    mask = np.arange(width)[None] < np.array(lengths)[:, None]
    return torch.from_numpy(tokens), torch.from_numpy(mask)


def collate_pairs(
    sources: Sequence[np.ndarray | Sequence[int]], targets: Sequence[np.ndarray | Sequence[int]]
) -> PairBatch:
    """Sources and targets without special symbols to a batch with them."""
    source, source_mask = pad(sources)
    target_in, _ = pad([[SOS, *target] for target in targets])
    target_out, target_mask = pad([[*target, EOS] for target in targets])
    return PairBatch(source, source_mask, target_in, target_out, target_mask, int(target_mask.sum()))
