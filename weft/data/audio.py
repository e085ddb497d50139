"""Recordings: read wav files, resample them, and read lists of recordings with transcripts.

Read next: ../nn/embed/audio.py, which turns samples into frames.
"""

import math
import os
import stat
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from weft.data.lines import read_lines
from weft.errors import DataError

ZEROS = 16
"""Zero crossings on each side of the resampling filter; more give a sharper cutoff."""

BLOCK = 2**16  # samples computed at a time

LOWEST_RATE = 1000
"""Minimum sample rate in Hz; a file at 1 Hz would become 16,000 times as long."""

MOST_PHASES = 4096
"""Maximum number of resampling filters; pairs of rates with a tiny common divisor would need more."""


class Sound(NamedTuple):
    """The samples of a wav file, averaged over its channels."""

    samples: np.ndarray  # [N] float32 between -1 and 1
    rate: int  # Hz

    @property
    def seconds(self) -> float:
        """Duration."""
        return len(self.samples) / self.rate


class ListedRecording(NamedTuple):
    """One line of a list of recordings."""

    file: Path
    text: str
    source: Path  # the list
    line: int  # of it


def read_wav(path: str | Path) -> Sound:
    """Read a RIFF wave file of 8, 16, 24 or 32 bit PCM.

    Raises:
        DataError: the file is missing, damaged, truncated, empty or not PCM.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise DataError("no such recording; check the name", path=path)
        with wave.open(str(path), "rb") as file:
            channels, width, rate, count = file.getparams()[:4]
            # Limit the count: a header may promise terabytes, which would be allocated.
            data = file.readframes(min(count, status.st_size // max(1, channels * width) + 1))
    except (wave.Error, EOFError, ValueError, RuntimeError, ZeroDivisionError) as error:
        why = str(error) or "it ends too early"
        raise DataError(
            f"not a PCM wav file ({why}); convert it: ffmpeg -i IN -c:a pcm_s16le OUT.wav", path=path
        ) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path=path) from None
    if rate < LOWEST_RATE or channels < 1 or width not in (1, 2, 3, 4):
        raise DataError(
            f"expected PCM of at least {LOWEST_RATE} Hz, "
            f"got {channels} channels of {8 * width} bit at {rate} Hz",
            path=path,
        )
    if len(data) != count * channels * width:
        raise DataError(
            f"expected {count:,} samples as its header says, got "
            f"{len(data) // (channels * width):,}; the "
            "file was cut off, so fetch it again",
            path=path,
        )
    if not count:
        raise DataError("the recording is empty; remove it", path=path)
    return Sound(_numbers(data, width).reshape(-1, channels).mean(1, dtype=np.float32), rate)


def _numbers(data: bytes, width: int) -> np.ndarray:
    if width == 1:  # the only unsigned wav format
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
    if width == 3:
        padded = np.zeros((len(data) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)  # the high bytes of 32 bit
        return (padded.view("<i4")[:, 0] / 2**31).astype(np.float32)
    whole = np.frombuffer(data, "<i2" if width == 2 else "<i4")
    return (whole / 2.0 ** (8 * width - 1)).astype(np.float32)


def resample(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """Resample a sound, with a low-pass filter at the new Nyquist frequency.

    y(n) = sum_k x(k) c sinc(c (t - k)) w(c (t - k) / Z) with t = n rate / wanted,
    c = 0.97 min(1, wanted / rate) and w a Hann window over Z zero crossings on each side.

    Args:
        samples: [N].
        rate, wanted: old and new sample rate in Hz.

    Returns:
        [ceil(N wanted / rate)] float32.

    Raises:
        DataError: the ratio of the rates is not a fraction of small numbers.

    Source: Smith, Digital Audio Resampling (the windowed sinc).

    Example:
        >>> len(resample(np.zeros(44100, np.float32), 44100, 16000))
        16000
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
    for begin in range(0, len(found), BLOCK):
        n = np.arange(begin, min(begin + BLOCK, len(found)))
        found[n] = np.einsum("nk,nk->n", neighbours[n * step // phases], filters[n % phases])
    return found


def read_spoken(path: str | Path) -> Iterator[ListedRecording]:
    """Read a list of lines FILE TAB TRANSCRIPT; file names are relative to the list's folder.

    Raises:
        DataError: a line has other columns or an empty transcript.
    """
    source = Path(path)
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 2:
            why = f"expected 2 columns (FILE TAB TRANSCRIPT), got {len(columns)}"
            raise DataError(why, path=path, line=number)
        if not columns[1].strip():
            why = f"no transcript of {columns[0]}; write what is said, or remove the line"
            raise DataError(why, path=path, line=number)
        yield ListedRecording(
            source.parent / columns[0].strip(), " ".join(columns[1].split()), source, number
        )


def read_paths(source: str | Path | BinaryIO) -> Iterator[tuple[int, Path]]:
    """The recordings of an input with their line numbers: one wav file, or a list with one file per line.

    In a list, columns after the first are ignored.

    Raises:
        DataError: the list cannot be read.
    """
    if isinstance(source, str | Path) and Path(source).suffix.lower() in (".wav", ".wave"):
        yield 1, Path(source)
        return
    folder = Path(source).parent if isinstance(source, str | Path) else Path()
    for number, line in enumerate(read_lines(source), 1):
        if line.strip():
            yield number, folder / line.split("\t")[0].strip()
