"""Recordings: read by soundfile, and listed with their transcripts.

soundfile believes a header that states more samples than there are, or none.
Read next: sound.py; ../nn/embed/audio.py, which turns samples into frames.
"""

import io
import re
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from weft.data.files import FREE_BYTES, MOST_TIMES, unreadable
from weft.data.listed import ListForm, listed, named_files
from weft.data.magic import UNLISTED, kind_of_file, misread, typed_for
from weft.data.report import Finding
from weft.data.video import sound_blocks
from weft.errors import ConfigError, DataError, DataWarning
from weft.store.digests import note

SOUNDS = (
    *(".wav", ".wave", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".caf"),
    *(".m4a", ".aac", ".mp4", ".wma", ".webm", ".amr", ".3gp"),  # these by PyAV, see video.py
)
"""Extensions of recordings; any other file is a list of them."""

SPOKEN = ListForm("file", "transcript", SOUNDS)  # a list of recordings

BLOCK = 2**16  # samples read at a time

LOWEST_RATE, USUAL_RATE, HIGHEST_RATE = 1000, 16_000, 768_000
"""Sample rates in Hz; a file at 1 Hz would become 16,000 times as long."""

CANCELLED = 1e-3
"""Share of the channels' power that their mean has at least, unless they cancel each other."""

_ZERO = b"data\0\0\0\0"
_UNKNOWN = 0x7FFF0000  # who writes to a pipe does not know the length, and states one from here on, or 0
_LENGTH = re.compile(
    r"^[ \t]*(?:data|SSND|riff|Riff size|Data Size) *: (\d+) \(should be (\d+)\)", re.MULTILINE
)


class Sound(NamedTuple):
    """The samples of a recording, averaged over its channels.

    Example:
        >>> import numpy as np
        >>> Sound(np.zeros(800, np.float32), 8000).seconds  # samples [N]
        0.1
    """

    samples: np.ndarray  # [N] float32, mostly between -1 and 1
    rate: int  # Hz

    @property
    def seconds(self) -> float:
        """Length of the recording in seconds."""
        return len(self.samples) / self.rate


class ListedRecording(NamedTuple):
    """One line of a list of recordings."""

    file: Path
    text: str
    source: Path  # the list
    line: int  # of it


def read_sound(path: str | Path) -> Sound:
    """Read a recording: WAV, FLAC, Ogg, Opus, MP3, AIFF and others of libsndfile; by PyAV .m4a and others.

    Raises:
        DataError: the file is missing, damaged, cut off, empty or of another kind.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import soundfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "silence.wav"
        ...     soundfile.write(path, np.zeros(800), 8000)
        ...     sound = read_sound(path)
        >>> len(sound.samples), sound.rate
        (800, 8000)
    """
    path = Path(path)
    kind, blocks, power, channels, rate = kind_of_file(path), list[np.ndarray](), 0.0, 1, USUAL_RATE
    other = kind is not None and kind.holds == "sound" and kind.command
    read = sound_blocks(path, typed_for(kind, str(path))) if kind and other else _blocks(path)
    for block, own in read:
        rate = own
        blocks.append(block.mean(1, dtype=np.float32))
        channels = block.shape[1]
        power += float(np.square(block, dtype=np.float64).sum()) / channels
    if not blocks:
        raise DataError("the recording is empty; remove it", path=path)
    samples = np.concatenate(blocks)
    if not np.isfinite(samples).all():
        raise DataError("has samples that are not finite numbers; save it again, or remove it", path=path)
    if channels > 1:
        if np.square(samples, dtype=np.float64).sum() < CANCELLED * power:
            what = (
                "its channels cancel each other, as with one microphone the wrong way round; save one of them"
            )
            raise DataError(f"{what}: {_one_channel(path)}", path=path)
        warnings.warn(
            f"{path}: has {channels} channels; of such files the mean is read", DataWarning, stacklevel=1
        )
    return Sound(samples, rate)


def _blocks(path: Path) -> Iterator[tuple[np.ndarray, int]]:
    """Blocks [N, channels] of a recording that libsndfile reads, and its rate."""
    with _opened(path) as file:
        count, whole = 0, file.frames
        while count < whole and len(block := file.read(BLOCK, "float32", always_2d=True)):
            count += len(block)
            yield block, file.samplerate
    if count < whole:
        raise _cut_off(path, f"{whole:,} samples", count)


def seconds_of(path: str | Path) -> float:
    """The length that a recording states; errors are those of `read_sound`."""
    with _opened(Path(path)) as file:
        return float(file.frames / file.samplerate)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """soundfile's open file, checked; its errors become a DataError."""
    note(path)
    try:
        import soundfile
    except OSError:
        raise ConfigError("recordings need libsndfile; install it, such as apt install libsndfile1") from None
    try:
        if path.exists() and not path.is_file():
            raise DataError("no such recording; check the name", path=path)
        with path.open("rb") as raw:
            start = raw.read(4096)
        source: str | io.BytesIO = str(path)
        if start[:4] == b"RIFF" and _ZERO in start:  # 0 stands for unknown; libsndfile would believe it
            source = io.BytesIO(path.read_bytes().replace(_ZERO, b"data\xff\xff\xff\xff", 1))
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        with soundfile.SoundFile(source) as file:
            _check(file, path)
            yield file
    except DataError:  # a ValueError too
        raise
    except (soundfile.SoundFileError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise _broken(path, start, str(getattr(error, "error_string", error))) from None


def _check(file: Any, path: Path) -> None:
    for stated, there in _LENGTH.findall(file.extra_info):
        if int(there) < int(stated) < _UNKNOWN:
            raise _cut_off(path, f"{int(stated):,} bytes of samples", int(there))
    if not LOWEST_RATE <= file.samplerate <= HIGHEST_RATE:
        got = f"{file.samplerate:,}"
        raise DataError(f"expected {LOWEST_RATE:,} to {HIGHEST_RATE:,} Hz, got {got} Hz", path=path)
    if not file.frames:
        raise DataError("the recording is empty; remove it", path=path)
    samples = file.frames * max(1, USUAL_RATE // file.samplerate)  # after resampling
    if 4 * samples > max(FREE_BYTES, MOST_TIMES * path.stat().st_size):
        what = f"unpacks to more than {MOST_TIMES} times its size, which no recording does"
        raise DataError(f"{what}; write it as a wav file if you trust it", path=path)


def _one_channel(path: str | Path) -> str:
    """The command that saves the first channel."""
    other = Path(path).with_suffix(".mono.wav")
    return f"ffmpeg -i {shlex.quote(str(path))} -af 'pan=mono|c0=c0' {shlex.quote(str(other))}"


def _cut_off(path: str | Path, stated: str, count: int) -> DataError:
    why = f"expected {stated} as its header says, got {count:,}; the file was cut off, so fetch it again"
    return DataError(why, path=path)


def _broken(path: Path, start: bytes, why: str) -> DataError:
    other = misread(start, str(path), "sound", "libsndfile")
    why = f"damaged, or no recording ({why.rstrip('.')}); fetch it again, or convert it with ffmpeg"
    return DataError(other or why, path=path)


def read_spoken(path: str | Path) -> Iterator[ListedRecording]:
    """Read a list of recordings with transcripts, see listed.py; names are relative to the list's folder."""
    source = Path(path)
    for row in listed(source, SPOKEN):
        if isinstance(row, Finding):
            raise row.error()
        if not row.text:
            why = f"no transcript of {row.file}; write what is said, or remove the line"
            raise DataError(why, path=path, line=row.number)
        yield ListedRecording(row.path or source.parent / row.file, row.text, source, row.number)


def read_paths(source: str | Path | BinaryIO) -> Iterator[tuple[int, Path]]:
    """The recordings of an input with their line numbers: one recording, or a list with a file per line."""
    path = Path(source) if isinstance(source, str) else source
    if isinstance(path, Path):
        kind = kind_of_file(path)
        if path.suffix.lower() in SOUNDS or (kind is not None and kind.holds in UNLISTED):
            yield 1, path
            return
    yield from ((row.number, file) for row, file in named_files(path, SPOKEN))
