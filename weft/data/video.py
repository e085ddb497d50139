"""Sound and pictures of files that only PyAV reads: .m4a, .amr, .webm, .mp4, .avi. An extra: weft-seq[video].

Read next: audio.py and images.py, which use this.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weft.data.pixels import LARGEST_CLIP, pixels
from weft.errors import DataError
from weft.store.digests import note

VIDEOS = (".mp4", ".avi", ".mov", ".mkv", ".webm", ".mpg", ".m4v", ".wmv")

RATE = 8.0  # pictures per second that are read, unless the recipe sets their number


@contextmanager
def _opened(path: Path, command: str) -> Iterator[Any]:
    note(path)
    try:
        import av
    except ImportError:
        raise DataError(
            f"needs PyAV (pip install 'weft-seq[video]'); or convert it: {command}", path=path
        ) from None
    try:
        with av.open(str(path)) as file:
            yield file
    except (av.FFmpegError, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"damaged, or no recording or video ({error}); fetch it again", path=path) from None


def sound_blocks(path: Path, command: str) -> Iterator[tuple[np.ndarray, int]]:
    """Blocks [N, channels] float32 of a sound, and their rate; `command` is typed where PyAV is missing."""
    with _opened(path, command) as file:
        if not file.streams.audio:
            raise DataError("expected a recording, got a file without sound; remove it", path=path)
        from av import AudioResampler

        plain = AudioResampler(format="fltp")
        for frame in file.decode(audio=0):
            yield from ((part.to_ndarray().T, part.sample_rate) for part in plain.resample(frame))


def read_video(path: Path, size: int | None, frames: int | None) -> np.ndarray:
    """The pictures [T, height, width, 3] uint8 of a video: RATE a second, or `frames`, evenly spaced."""
    clip = shlex.quote(str(path.with_suffix(".gif")))
    command = f"ffmpeg -i {shlex.quote(str(path))} -r {RATE:g} {clip}"
    found: list[np.ndarray] = []
    with _opened(path, command) as file:
        packets = file.demux(video=0) if file.streams.video else ()  # one for each picture, not decoded yet
        ticks = [(one.dts if one.pts is None else one.pts, one.time_base) for one in packets if one.size]
        times = np.sort([float((shown or 0) * unit) for shown, unit in ticks])
        if frames is None:
            chosen = np.flatnonzero(np.diff(np.floor(times * RATE), prepend=-np.inf))
        else:
            chosen = np.linspace(0, len(times) - 1, min(frames, len(times))).round().astype(int)
        wanted = set(chosen.tolist())
        file.seek(0)
        pictures = file.decode(video=0) if wanted else ()
        for number, one in enumerate(islice(pictures, max(wanted, default=0) + 1)):
            if number in wanted:
                picture = np.rot90(one.to_ndarray(format="rgb24"), getattr(one, "rotation", 0) // 90)
                found.append(pixels(Image.fromarray(picture), size, path))
                if len(found) * found[0].nbytes > LARGEST_CLIP:
                    what = (
                        f"more than {LARGEST_CLIP // 2**20} MiB of pictures; give a shorter or smaller clip"
                    )
                    raise DataError(what, path=path)
    if not found:
        raise DataError("expected a video, got a file without pictures; remove it", path=path)
    return np.stack(found)
