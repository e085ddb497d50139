"""Sounds at another sample rate, which soundfile does not offer, and long ones cut at their pauses.

The program of an exported model contains this file: ../export/programs/__init__.py.
"""

import math

import numpy as np

from weft.errors import DataError

ZEROS = 16  # zero crossings on each side of the filter; more give a sharper cutoff

PRODUCTS = 2**21
"""Products of a sample and a filter computed at a time; a filter from 768 kHz has 1,600."""

MOST_PHASES = 4096
"""Maximum number of filters; pairs of rates with a tiny common divisor would need more."""


def resample(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """Samples [N] as [ceil(N wanted / rate)] float32, with a low-pass filter at the new Nyquist frequency.

    y(n) = sum_k x(k) c sinc(c (t - k)) w(c (t - k) / Z) with t = n rate / wanted,
    c = 0.97 min(1, wanted / rate) and w a Hann window over Z zero crossings on each side.

    Source: Smith, Digital Audio Resampling (the windowed sinc).
    """
    if rate == wanted:
        return samples
    divisor = math.gcd(rate, wanted)
    step, phases = rate // divisor, wanted // divisor
    if phases > MOST_PHASES:
        raise DataError(f"cannot resample {rate} Hz to {wanted} Hz; convert the file to a common rate first")
    cut = 0.97 * min(1.0, wanted / rate)
    reach = math.ceil(ZEROS / cut)
    place = np.arange(-reach, reach + 2)[None] - (np.arange(phases) * step % phases / phases)[:, None]
    place = cut * place
    window = np.where(np.abs(place) < ZEROS, np.cos(np.pi * place / ZEROS / 2) ** 2, 0.0)
    filters = (cut * np.sinc(place) * window).astype(np.float32)  # [phases, taps]
    padded = np.pad(samples.astype(np.float32), (reach, reach + 2))
    neighbours = np.lib.stride_tricks.sliding_window_view(padded, filters.shape[1])
    found = np.empty(-(-len(samples) * wanted // rate), np.float32)
    outputs = max(1, PRODUCTS // filters.shape[1])
    for begin in range(0, len(found), outputs):
        n = np.arange(begin, min(begin + outputs, len(found)))
        found[n] = np.einsum("nk,nk->n", neighbours[n * step // phases], filters[n % phases])
    return found


def cut_at_pauses(
    frames: np.ndarray, longest: int, *, pause: int, margin: int, smooth: int
) -> list[np.ndarray]:
    """The parts of frames [S, F] between pauses; all lengths are numbers of frames.

    A part without a pause that is longer than `longest` is cut where its second half is quietest. `margin` is
    kept of a pause on each side; loudness is the mean of `smooth` frames.

    Example:
        >>> frames = np.ones((60, 2), np.float32)
        >>> frames[30:40] = -1.0  # a pause
        >>> [len(one) for one in cut_at_pauses(frames, 40, pause=4, margin=2, smooth=1)]
        [32, 22]
    """
    loud = np.convolve(frames.mean(1), np.ones(smooth) / smooth, "same")
    low, high = np.quantile(loud, (0.1, 0.9))
    heard = np.flatnonzero(loud >= low + 0.3 * (high - low))
    ends = np.flatnonzero(np.diff(heard, append=len(frames) + pause) >= pause)
    begins = [0, *(ends[:-1] + 1)]
    found = []
    for begin, end in zip(heard[begins].tolist(), (heard[ends] + 1).tolist(), strict=True):
        while end - begin > longest:
            middle = begin + longest // 2
            cut = middle + int(loud[middle : begin + longest].argmin())
            found.append(frames[begin:cut])
            begin = cut
        found.append(frames[max(0, begin - margin) : end + margin])
    return found
