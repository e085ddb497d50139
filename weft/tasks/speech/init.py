"""`weft init speech`: a recipe for a user's recordings."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from weft.data.audio import SPOKEN, read_spoken
from weft.errors import DataError
from weft.tasks.init import TEST, TRAIN, VALID, TemplateInit, examples_held_out, files_of, planned, splits
from weft.wording import plural
from weft.words import spaced


class SpeechInit(TemplateInit):
    """A recipe for recordings that a list names with their transcripts."""

    about: ClassVar[str] = "A transcriber for recordings."
    details: ClassVar[str] = "Recordings (.wav, .flac, .mp3 and others) are listed with their transcripts."
    examples: ClassVar = ("recordings/train.tsv",)
    cells: ClassVar = SPOKEN[:2]
    lists_files: ClassVar = True
    options: ClassVar = (TRAIN._replace(help="Training list: lines FILE TAB TRANSCRIPT."), VALID, TEST)

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        train, valid, test = files_of(given)
        found = _measured(train)
        seconds = found.seconds
        size = 96 if seconds < 2 * 3600 else 192 if seconds < 50 * 3600 else 320
        return {
            "counted": f"{plural(found.recordings, 'recording')}, {seconds / 60:.1f} minutes",
            "longest": f"{found.longest:.1f}",
            "letters": f"{found.letters / found.recordings:.0f}",
            "rates": ", ".join(f"{one:,}" for one in found.rates),
            **splits(train, valid, test),
            "every": examples_held_out(found.recordings),
            "rate": min(16000, found.rates[-1]),
            "speeds": "[0.9, 1.0, 1.1]" if seconds < 100 * 3600 else "[1.0]",
            "size": size,
            "wide": max(128, size),
            **planned(100 * seconds / 4000, epochs=30 if seconds < 3600 else 10, warmup=100)._asdict(),
            "metric": "wer" if found.spaced else "cer",
            "other": "cer" if found.spaced else "wer",
        }


class _Measured(NamedTuple):
    """The recordings of a list."""

    recordings: int
    seconds: float  # in total
    longest: float  # seconds
    letters: int  # in all transcripts
    spaced: bool  # whether these have spaces between words
    rates: list[int]  # Hz, ascending


def _measured(train: Path) -> _Measured:
    from weft.tasks.speech.data import heard  # loads torch

    count, seconds, longest, letters = 0, 0.0, 0.0, 0
    rates: set[int] = set()
    texts: list[str] = []
    for one in read_spoken(train):
        sound = heard(one)
        count, seconds, letters = count + 1, seconds + sound.seconds, letters + len(one.text)
        texts.append(one.text)
        longest = max(longest, sound.seconds)
        rates.add(sound.rate)
    if not count:
        raise DataError("expected lines FILE TAB TRANSCRIPT, got none", path=train)
    return _Measured(count, seconds, longest, letters, spaced(texts), sorted(rates))
