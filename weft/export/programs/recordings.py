"""Models that write what is said in a recording."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.sound import cut_at_pauses, resample
from weft.export.programs.common import KINDS
from weft.export.programs.writers import SourceWriter

LOWEST_RATE = 1000
UNKNOWN = 0x7FFF0000  # a wav file from a pipe states such a length


class RecordingTranscriber(SourceWriter):
    """The text of a recording."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        super().__init__(folder, about)
        self.sound = about["sound"]
        self.filters: np.ndarray = np.load(folder / self.sound["filters"])

    def __call__(self, given: str | Path | bytes, beam: int | None = None) -> str:
        """The text."""
        if isinstance(given, str):
            given = given.split("\t")[0].strip()
            if not given:
                return ""
        name = "the recording" if isinstance(given, bytes) else str(given)
        try:
            frames = self.frames(*samples_of(given))
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            raise ValueError(f"{name}: missing, damaged, or no recording ({error})") from None
        texts = [self.text(part, name, beam) for part in self.parts(frames)]
        return " ".join(text for text in texts if text)

    def text(self, frames: np.ndarray, name: str, beam: int | None) -> str:
        """What is said in the frames [S, F] of a part of a recording."""
        most = self.about["max_source"]
        if most is not None and len(frames) > most:
            raise ValueError(f"{name}: expected at most {most} frames, got {len(frames)}; cut it into pieces")
        source = {"frames": frames[None], "mask": np.ones((1, len(frames)), bool)}
        return self.target.decode(self.write(source, len(frames), beam)[0])

    def parts(self, frames: np.ndarray) -> list[np.ndarray]:
        """The frames [S, F]; of a recording longer than those of training, the parts between its pauses."""
        how = self.sound["cuts"]
        if how is None or len(frames) <= how["longest"]:
            return [frames]
        found = cut_at_pauses(frames, **how)
        return [normalised(one) for one in found] if self.sound["normalise"] else found

    def frames(self, samples: np.ndarray, rate: int) -> np.ndarray:
        """[S, F] float32: the log of the power of each band in overlapping windows; samples are -1 to 1."""
        length, hop = self.sound["window"], self.sound["hop"]
        points = 2 * (self.filters.shape[1] - 1)
        samples = resample(samples, rate, self.sound["rate"])
        samples = np.pad(samples, (0, max(0, length - len(samples))))
        windows = np.lib.stride_tricks.sliding_window_view(samples, length)[::hop]
        hann = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)).astype(np.float32)
        found = np.empty((len(windows), len(self.filters)))
        for begin in range(0, len(windows), 1024):
            part = slice(begin, begin + 1024)
            power = np.abs(np.fft.rfft(windows[part] * hann, points)) ** 2
            found[part] = np.log(np.maximum(power @ self.filters.T, self.sound["least"]))
        return (normalised(found) if self.sound["normalise"] else found).astype(np.float32)


def normalised(frames: np.ndarray) -> np.ndarray:
    """Frames [S, F] with mean 0 and deviation 1 of each band."""
    moved = frames - frames.mean(0)
    scaled: np.ndarray = moved / np.maximum(np.sqrt(np.square(moved).mean(0)), 1e-2)
    return scaled


def samples_of(given: str | Path | bytes) -> tuple[np.ndarray, int]:
    """The samples [N] of a recording, the mean of its channels, and their rate."""
    import soundfile

    content = given if isinstance(given, bytes) else Path(given).read_bytes()
    if content[:4] == b"RIFF":  # 0 stands for an unknown length
        content = content[:4096].replace(b"data" + bytes(4), b"data\xff\xff\xff\xff", 1) + content[4096:]
    with soundfile.SoundFile(io.BytesIO(content)) as file:
        found = file.read(file.frames, "float32", always_2d=True)
        rate, whole = file.samplerate, file.frames
        stated = re.findall(
            r"^[ \t]*(?:data|SSND) *: (\d+) \(should be (\d+)\)", file.extra_info, re.MULTILINE
        )
    if rate < LOWEST_RATE:
        raise ValueError(f"expected at least {LOWEST_RATE} Hz, got {rate}")
    if not whole or len(found) < whole or any(int(b) < int(a) < UNKNOWN for a, b in stated):
        raise ValueError("it is empty or was cut off")
    if not np.isfinite(found).all():
        raise ValueError("it has samples that are not finite numbers")
    return found.mean(1, dtype=np.float32), rate


KINDS |= {"recordings": RecordingTranscriber}
