"""A recipe's section `data` for speech, batches of recordings, and what `weft data check` reports of them.

Read next: ../../data/audio.py, which reads them; ../../nn/embed/audio.py, which makes frames.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.data.audio import SOUNDS, SPOKEN, ListedRecording, Sound, read_sound, read_spoken
from weft.data.listed import ListedText, columns_note, listed
from weft.data.report import COMMON, Finding, Report, SeenContent, other_form, placed
from weft.data.several import check_hold_out, is_held_out
from weft.data.sound import cut_at_pauses, resample
from weft.errors import ConfigError, DataError, MissingSplitError
from weft.nn.embed.audio import log_mel, mel_filters, normalised
from weft.setting_types import AtLeastOne, Bounds, Positive, Whole, check_fields
from weft.tasks.seq2seq.encoding import PairBatch, collate_pairs
from weft.tasks.task import Progress, Split
from weft.tasks.vocabulary import WordSettings


@dataclass(frozen=True, kw_only=True)
class FrameSettings:
    """How a sound is converted to frames.

    Args:
        rate: samples per second; recordings with other rates are resampled.
        bins: frequency bands per frame.
        window, hop: length of a frame, and step from one frame to the next, in seconds.
        normalise: scale every band of a recording to mean 0 and deviation 1.
    """

    rate: Annotated[int, Bounds(ge=1000)] = 16000
    bins: AtLeastOne = 40
    window: float = 0.025
    hop: float = 0.01
    normalise: bool = True

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.hop <= self.window < 1:
            raise ConfigError(f"hop: expected seconds, at most the window of {self.window}, got {self.hop}")
        mel_filters(self.rate, 2 ** math.ceil(math.log2(self.window * self.rate)), self.bins)

    def of(self, sound: Sound, speed: float = 1.0) -> np.ndarray:
        """Frames [S, F] of a sound, at `speed` times its speed (which also changes its pitch)."""
        samples = resample(sound.samples, sound.rate, self.rate)
        samples = resample(samples, round(100 * speed), 100)
        frames = log_mel(
            torch.from_numpy(samples), self.rate, bins=self.bins, window=self.window, hop=self.hop
        )
        return (normalised(frames) if self.normalise else frames).numpy()


def cuts(sound: FrameSettings, seconds: float) -> dict[str, int] | None:
    """How recordings longer than so many seconds are cut, in frames; see cut_at_pauses.

    Example:
        >>> cuts(FrameSettings(), 4.0)
        {'longest': 400, 'pause': 40, 'margin': 20, 'smooth': 5}
    """
    if math.isinf(seconds):
        return None
    lengths = {"pause": 0.4, "margin": 0.2, "smooth": 0.05}
    found = {name: max(1, round(one / sound.hop)) for name, one in lengths.items()}
    return {"longest": max(2, round(seconds / sound.hop)), **found}


def parts_of(frames: np.ndarray, sound: FrameSettings, seconds: float) -> list[np.ndarray]:
    """The frames [S, F] of a recording; of one longer than so many seconds, the parts between its pauses."""
    how = cuts(sound, seconds)
    if how is None or len(frames) <= how["longest"]:
        return [frames]
    found = cut_at_pauses(frames, **how)
    return [normalised(torch.from_numpy(one)).numpy() for one in found] if sound.normalise else found


class Recording(NamedTuple):
    """Frames and transcript of a recording."""

    frames: np.ndarray  # [S, F] float16
    text: str
    file: Path


def _characters() -> WordSettings:
    return WordSettings(kind="character", size=None)


@dataclass(frozen=True, kw_only=True)
class SpeechData:
    """Lists of recordings with their transcripts, see the formats page; files are relative to the list.

    All frames of the training set are kept in memory, 2 bytes each: 29 MB per hour of sound with 40 bands.

    Args:
        folder: folder of the lists; by default the current one.
        train, valid, test: the lists.
        hold_out: 20 holds out one training recording of every 20 instead of the list `valid`.
        sound: see FrameSettings.
        vocabulary: characters by default; see WordSettings.
        speeds: every training recording is used at each of these speeds (Ko et al. 2015).
        max_seconds: longer recordings are left out of training, and their number is reported.
        batch_frames: frames per batch, without padding.
        batch_rows: maximum recordings per batch; 0 for no limit.
        validate_rows: validation recordings that are transcribed for the error rate; 0 for all.
    """

    folder: Path = Path()
    train: str = "train.tsv"
    valid: str = "valid.tsv"
    test: str | None = None
    hold_out: int = 0
    sound: FrameSettings = field(default_factory=FrameSettings)
    vocabulary: WordSettings = field(default_factory=_characters)
    speeds: tuple[float, ...] = (1.0,)
    max_seconds: Positive = 20.0
    batch_frames: AtLeastOne = 8000
    batch_rows: Whole = 0
    validate_rows: Whole = 0

    def __post_init__(self) -> None:
        check_fields(self)
        check_hold_out(self.hold_out, valid=None if self.hold_out else self.valid)
        if not self.speeds or not all(0.5 <= speed <= 2 for speed in self.speeds):
            raise ConfigError(
                f"speeds: expected numbers from 0.5 to 2, such as [0.9, 1, 1.1], got {list(self.speeds)}"
            )

    def has(self, split: Split) -> bool:
        """Whether the recipe has the split."""
        return getattr(self, split) is not None

    def find(self, split: Split) -> Path:
        """The list of a split."""
        name = self.train if split == "valid" and self.hold_out else getattr(self, split)
        if name is None:
            raise MissingSplitError.of(split, "recordings", "LIST.tsv")
        path = self.folder / name
        if not path.exists():
            raise DataError(f"no such file; check data.{split}", path=path)
        return path

    def describe(self, split: Split) -> str:
        """For titles."""
        name = self.find(split).name
        return f"one recording of {self.hold_out} of {name}" if self.hold_out and split == "valid" else name

    def listed(self, split: Split) -> Iterator[ListedRecording]:
        """The lines of a split; raises as `find`, and if one is damaged."""
        lines = read_spoken(self.find(split))
        if not self.hold_out or split == "test":
            return lines
        held = split == "valid"
        return (one for n, one in enumerate(lines) if is_held_out(n, self.hold_out) is held)

    def recordings(
        self,
        listed: Iterable[ListedRecording],
        progress: Progress | None = None,
        speeds: Sequence[float] = (1.0,),
    ) -> Iterator[Recording]:
        """All recordings of a list, at each speed."""
        for number, one in enumerate(listed):
            if progress is not None and number % 50 == 0:
                progress("listening", number, None)
            sound = heard(one)
            for speed in speeds:
                yield Recording(self.sound.of(sound, speed).astype(np.float16), one.text, one.file)

    def shorter(self, recording: Recording) -> bool:
        """Whether a recording is short enough for training."""
        return len(recording.frames) * self.sound.hop <= self.max_seconds


def heard(spoken: ListedRecording) -> Sound:
    """The sound of a line."""
    try:
        return read_sound(spoken.file)
    except DataError as error:
        raise DataError(str(error), path=spoken.source, line=spoken.line) from None


def pad_frames(rows: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
    """The frames [S_i, F] of recordings as [B, S, F] float32, with their mask [B, S]."""
    longest = max(len(row) for row in rows)
    frames = np.zeros((len(rows), longest, rows[0].shape[1]), np.float32)
    for place, row in enumerate(rows):
        frames[place, : len(row)] = row
    mask = np.arange(longest)[None] < np.array([len(row) for row in rows])[:, None]
    return torch.from_numpy(frames), torch.from_numpy(mask)


def collate_recordings(rows: Sequence[np.ndarray], targets: Sequence[list[int]]) -> PairBatch:
    """A batch of frames and of transcripts without special symbols."""
    source, mask = pad_frames(rows)
    return collate_pairs([[1]] * len(rows), targets)._replace(source=source, source_mask=mask)


WORDS = COMMON | {
    "recording": "recordings that cannot be read",
    "unspoken": "recordings without a transcript",
    "silent": "silent recordings",
    "nothing": "lists without recordings",
    "duplicate": "duplicate recordings in one list",
    "overlap": "recordings that also occur in an earlier list",
}


def check_recordings(files: Sequence[Path]) -> Report:
    """Check lists of recordings and every recording in them, or single recordings."""
    findings: list[Finding] = []
    lines: dict[str, int] = {}
    notes: list[str] = []
    seen = SeenContent()
    for file in files:
        if file.suffix.lower() in SOUNDS:
            findings += _sound(file, str(file), 0, seen)
            lines[str(file)] = 1
            continue
        try:
            rows = list(listed(file, SPOKEN))
            notes += columns_note(file, SPOKEN)
        except DataError as error:
            findings.append(placed(str(file), error))
            continue
        lines[str(file)] = len(rows)
        for row in rows:
            findings += [row] if isinstance(row, Finding) else _row(file, row, seen)
        said = [(row.number, row.text) for row in rows if isinstance(row, ListedText)]
        findings += other_form(str(file), said)
        if not rows:
            findings.append(Finding(str(file), 0, "nothing", "expected recordings, got none"))
    counts = dict(Counter(one.kind for one in findings))
    return Report(findings, counts, lines, WORDS, "recordings", notes=tuple(notes), each=3)


def _row(file: Path, row: ListedText, seen: SeenContent) -> Iterator[Finding]:
    if not row.text:
        what = f"no transcript of {row.file}; write what is said, or remove the line"
        yield Finding(str(file), row.number, "unspoken", what)
    yield from _sound(row.path or file.parent / row.file, str(file), row.number, seen)


def _sound(path: Path, file: str, line: int, seen: SeenContent) -> Iterator[Finding]:
    try:
        sound = read_sound(path)
    except DataError as error:
        yield Finding(file, line, "recording", str(error) if line else error.why)
        return
    if not sound.samples.any():
        yield Finding(file, line, "silent", f"{path} is silent; is it the right file?")
    elif found := seen.again(sound.samples.tobytes(), f"{file}:{line}" if line else file, file):
        yield Finding(file, line, found[0], f"{path.name} is also at {found[1]}")
