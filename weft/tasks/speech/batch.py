"""A batch of recordings and their transcripts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.tasks.seq2seq.batch import pad
from weft.text.vocabulary import EOS, SOS


class RecordingBatch(NamedTuple):
    """Frames and transcripts, as weft.models.Generator reads them."""

    source: Tensor  # [B, S, F] float32, padded with zeros
    source_mask: Tensor  # [B, S] bool
    target_in: Tensor  # [B, T] <sos> w_1 .. w_n
    target_out: Tensor  # [B, T] w_1 .. w_n <eos>
    target_mask: Tensor  # [B, T] bool
    target_tokens: int  # real target positions, with <eos>

    def to(self, device: torch.device) -> "RecordingBatch":
        """The same batch on a device."""
        tensors = [part.to(device) for part in self[:5]]
        return RecordingBatch(tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], self.target_tokens)

    def rows(self, chosen: slice) -> "RecordingBatch":
        """Some rows, with the batch's padding."""
        tensors = [part[chosen] for part in self[:5]]
        count = int(tensors[4].sum())
        return RecordingBatch(tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], count)


def pad_frames(rows: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Pad the frames [S_i, F] of each recording to [B, S, F] float32, with their mask [B, S].

    Example:
        >>> pad_frames([np.ones((2, 1)), np.ones((1, 1))])[1].tolist()
        [[True, True], [True, False]]
    """
    longest = max(len(row) for row in rows)
    frames = np.zeros((len(rows), longest, rows[0].shape[1]), np.float32)
    for place, row in enumerate(rows):
        frames[place, : len(row)] = row
    mask = np.arange(longest)[None] < np.array([len(row) for row in rows])[:, None]
    return torch.from_numpy(frames), torch.from_numpy(mask)


def collate_recordings(rows: Sequence[np.ndarray], targets: Sequence[list[int]]) -> RecordingBatch:
    """A batch of frames and of transcripts without special symbols."""
    source, source_mask = pad_frames(rows)
    target_in, _ = pad([[SOS, *target] for target in targets])
    target_out, target_mask = pad([[*target, EOS] for target in targets])
    return RecordingBatch(source, source_mask, target_in, target_out, target_mask, int(target_mask.sum()))
