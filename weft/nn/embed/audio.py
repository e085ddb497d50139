"""Sound becomes log-mel frames, and frames become vectors.

A sound is cut into windows that overlap; of each, the power of the Fourier transform is summed in bands
that are as wide as the ear's, and its logarithm taken. Read next: ../encoders/pyramid.py.
"""

import functools
import math

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.kernels.dropout import Dropout
from weft.nn.kernels.linear import Linear
from weft.randomness import for_rows, open_generator

LEAST = 1e-6
"""Power of a band that counts as silence; the logarithm of 0 would be no number."""


def mel(hertz: Tensor) -> Tensor:
    """m = 2595 log10(1 + f / 700), the pitch that is heard (O'Shaughnessy 1987).

    Example:
        >>> mel(torch.tensor([0.0, 1000.0])).round().tolist()
        [0.0, 1000.0]
    """
    return 2595 * torch.log10(1 + hertz / 700)


@functools.cache
def mel_filters(rate: int, points: int, bins: int, *, low: float = 20.0, high: float | None = None) -> Tensor:
    """Triangles [F, points // 2 + 1] with corners at equal steps of mel, each as high as 1.

    Args:
        rate: samples a second.
        points: of the Fourier transform.
        bins: F, triangles.
        low, high: Hertz, where the first one begins and the last one ends; half the rate by default.

    Raises:
        ConfigError: so many triangles that one lies between two frequencies of the transform.
    """
    high = rate / 2 if high is None else high
    ends = mel(torch.tensor([low, high], dtype=torch.float64))
    corners = 700 * (10 ** (torch.linspace(float(ends[0]), float(ends[1]), bins + 2).double() / 2595) - 1)
    frequencies = torch.linspace(0, rate / 2, points // 2 + 1, dtype=torch.float64)
    rise = (frequencies - corners[:-2, None]) / (corners[1:-1] - corners[:-2])[:, None]
    fall = (corners[2:, None] - frequencies) / (corners[2:] - corners[1:-1])[:, None]
    filters = torch.minimum(rise, fall).clamp(min=0)
    if bool((filters.sum(1) == 0).any()):
        raise ConfigError(
            f"bins: {bins} bands are more than {points} samples at {rate} Hz tell apart; take fewer, or a "
            "longer window"
        )
    return filters.float()


def log_mel(
    samples: Tensor, rate: int, *, bins: int = 40, window: float = 0.025, hop: float = 0.01
) -> Tensor:
    """One sound [N] to frames [S, F]: the logarithm of each band's power, in windows of Hann's form.

    Sounds shorter than a window are filled up with silence; what is left after the last whole window is not
    heard.

    Args:
        samples: between -1 and 1.
        rate: of them a second.
        bins: F, bands.
        window, hop: seconds of a window, and from the beginning of one to that of the next.

    Example:
        >>> log_mel(torch.zeros(16000), 16000).shape
        torch.Size([98, 40])
    """
    length, step = round(window * rate), round(hop * rate)
    points = 2 ** math.ceil(math.log2(length))
    samples = nn.functional.pad(samples, (0, max(0, length - len(samples))))
    # torch.stft puts a window shorter than `points` in the middle; so much is added at both ends that the
    # first window begins with the first sample.
    left = (points - length) // 2
    spectrum = torch.stft(
        nn.functional.pad(samples, (left, points - length - left)),
        points,
        step,
        length,
        torch.hann_window(length, dtype=samples.dtype, device=samples.device),
        center=False,
        return_complex=True,
    )
    power = spectrum.abs() ** 2  # [points // 2 + 1, S]
    filters = mel_filters(rate, points, bins).to(power)
    return (filters @ power).clamp(min=LEAST).log().mT


def normalised(frames: Tensor) -> Tensor:
    """Every band of a recording [S, F] with mean 0 and deviation 1: loudness and microphone vanish."""
    centred = frames - frames.mean(0)
    return centred / centred.square().mean(0).sqrt().clamp(min=1e-2)


class Frames(nn.Module):
    """W x + b for every frame x; in training, stretches of time and bands are masked (SpecAugment).

    Args:
        bins: F, features of a frame.
        size: D.
        masks: stretches of time and bands, each so many a row, that are set to zero in training.
        longest: frames of a stretch at most (and no more than a fifth of the row's).
        widest: bands next to each other that are masked at most.
        dropout: share of features set to zero in training.

    Source: Park et al. 2019, section 2, without the warping of time.

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
        dropout: float = 0.0,
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
    """[rows, places] bool: in each row one stretch of 0 to `most` places is True."""
    drawn = for_rows(
        lambda shape: torch.rand(2, *shape, generator=open_generator()).transpose(0, 1), (rows, 1)
    )
    drawn = drawn.transpose(0, 1)  # [2, rows, 1]
    width = (drawn[0] * (most + 1)).floor()
    begin = (drawn[1] * (places - width + 1)).floor()
    place = torch.arange(places)
    return ((place >= begin) & (place < begin + width)).to(like.device)
