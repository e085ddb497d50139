"""`weft init speech`: a recipe for a user's recordings."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

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
        from weft.tasks.speech.data import heard  # loads torch

        train, valid, test = files_of(given)
        lengths, rates, texts = list[float](), set[int](), list[str]()
        for one in read_spoken(train):
            sound = heard(one)
            lengths.append(sound.seconds)
            rates.add(sound.rate)
            texts.append(one.text)
        if not texts:
            raise DataError("expected lines FILE TAB TRANSCRIPT, got none", path=train)
        seconds = sum(lengths)
        metric, other = ("wer", "cer") if spaced(texts) else ("cer", "wer")
        size = 96 if seconds < 2 * 3600 else 192 if seconds < 50 * 3600 else 320
        return {
            "counted": f"{plural(len(texts), 'recording')}, {seconds / 60:.1f} minutes",
            "longest": f"{max(lengths):.1f}",
            "letters": f"{sum(map(len, texts)) / len(texts):.0f}",
            "rates": ", ".join(f"{one:,}" for one in sorted(rates)),
            **splits(train, valid, test),
            "every": examples_held_out(len(texts)),
            "rate": min(16000, max(rates)),
            "speeds": "[0.9, 1.0, 1.1]" if seconds < 100 * 3600 else "[1.0]",
            "size": size,
            "wide": max(128, size),
            **planned(100 * seconds / 4000, epochs=30 if seconds < 3600 else 10, warmup=100)._asdict(),
            "metric": metric,
            "other": other,
        }
