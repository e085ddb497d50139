"""Log-mel features of sound, and their embedding.

A sound is split into overlapping windows. The power spectrum of each window is summed in mel bands, which
match human hearing, and the logarithm is taken.
Read next: ../encoders/encoder.py, whose Pyramid shortens it.
"""

import functools
import math

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.ops import Dropout, Linear
from weft.nn.randomness import for_rows, uniform
from weft.setting_types import DropoutRate

PIECE = 4096
"""Frames computed at a time: the spectrum of an hour would take gigabytes."""

LOWEST = 20.0  # Hz
LEAST = 1e-6
"""Minimum power of a band, for silence, because the logarithm of 0 is infinite."""


def mel(hertz: Tensor) -> Tensor:
    """m = 2595 log10(1 + f / 700), the perceived pitch (O'Shaughnessy 1987)."""
    return 2595 * torch.log10(1 + hertz / 700)


@functools.cache
def mel_filters(rate: int, points: int, bins: int) -> Tensor:
    """F triangular filters [F, points // 2 + 1] of height 1 with corners equally spaced in mel."""
    ends = mel(torch.tensor([LOWEST, rate / 2], dtype=torch.float64))
    corners = 700 * (10 ** (torch.linspace(float(ends[0]), float(ends[1]), bins + 2).double() / 2595) - 1)
    frequencies = torch.linspace(0, rate / 2, points // 2 + 1, dtype=torch.float64)
    rise = (frequencies - corners[:-2, None]) / (corners[1:-1] - corners[:-2])[:, None]
    fall = (corners[2:, None] - frequencies) / (corners[2:] - corners[1:-1])[:, None]
    filters = torch.minimum(rise, fall).clamp(min=0)
    if bool((filters.sum(1) == 0).any()):
        raise ConfigError(
            f"bins: {points} samples at {rate} Hz cannot resolve {bins} bands; use fewer bands, or a "
            "longer window"
        )
    return filters.float()


def points_of(length: int) -> int:
    """Points of the Fourier transform of a window of `length` samples, the next power of 2."""
    return 2 ** math.ceil(math.log2(length))


def log_mel(
    samples: Tensor, rate: int, *, bins: int = 40, window: float = 0.025, hop: float = 0.01
) -> Tensor:
    """One sound [N] to frames [S, F]: log power of each of F bands in Hann windows; times in seconds.

    Sounds shorter than a window are padded with silence; an incomplete last window is dropped.

    Example:
        >>> log_mel(torch.zeros(16000), 16000).shape
        torch.Size([98, 40])
    """
    length, step = round(window * rate), round(hop * rate)
    points = points_of(length)
    samples = nn.functional.pad(samples, (0, max(0, length - len(samples))))
    # torch.stft centres a window shorter than `points`; pad both ends so that the first window begins at the
    # first sample.
    left = (points - length) // 2
    samples = nn.functional.pad(samples, (left, points - length - left))
    window_values = torch.hann_window(length, dtype=samples.dtype, device=samples.device)
    filters = mel_filters(rate, points, bins).to(samples)
    frames = []
    for begin in range(0, 1 + (len(samples) - points) // step, PIECE):
        piece = samples[begin * step : (begin + PIECE - 1) * step + points]
        spectrum = torch.stft(
            piece, points, step, length, window_values, center=False, return_complex=True
        )  # [points // 2 + 1, S]
        frames.append((filters @ spectrum.abs() ** 2).clamp(min=LEAST).log().mT)
    return torch.cat(frames)


def normalised(frames: Tensor) -> Tensor:
    """Normalise each band of a recording [S, F] to mean 0 and standard deviation 1."""
    centred = frames - frames.mean(0)
    return centred / centred.square().mean(0).sqrt().clamp(min=1e-2)


class Frames(nn.Module):
    """W x + b for every frame x; in training, spans of time and frequency are masked (SpecAugment).

    Args:
        bins: F, features of a frame.
        size: D.
        masks: number of time masks and of frequency masks per row, in training.
        longest: maximum frames per time mask (and at most a fifth of the row).
        widest: maximum bands per frequency mask.
        dropout: dropout rate of the output.

    Source: Park et al. 2019, section 2, without time warping.

    Example:
        >>> Frames(40, 16)(torch.zeros(2, 98, 40)).shape
        torch.Size([2, 98, 16])
    """

    def __init__(
        self,
        bins: int,
        size: int,
        *,
        masks: int = 0,
        longest: int = 20,
        widest: int = 8,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__()
        self.masks, self.longest, self.widest = masks, longest, widest
        self.project = Linear(bins, size)
        self.dropout = Dropout(dropout)

    def forward(self, frames: Tensor) -> Tensor:
        """[B, S, F] to [B, S, D]."""
        if self.training and self.masks:
            rows, steps, bins = frames.shape
            for _ in range(self.masks):
                time = _stretches(rows, steps, min(self.longest, steps // 5), frames)
                band = _stretches(rows, bins, min(self.widest, bins), frames)
                frames = frames.masked_fill(time[:, :, None] | band[:, None], 0.0)
        return self.dropout(self.project(frames))


def _stretches(rows: int, places: int, most: int, like: Tensor) -> Tensor:
    """[rows, places] bool: one random span of 0 to `most` places is True in each row."""
    drawn = for_rows(lambda shape: uniform((2, *shape), like.device).transpose(0, 1), (rows, 1))
    drawn = drawn.transpose(0, 1)  # [2, rows, 1]
    width = (drawn[0] * (most + 1)).floor()
    begin = (drawn[1] * (places - width + 1)).floor()
    place = torch.arange(places, device=like.device)
    return (place >= begin) & (place < begin + width)
