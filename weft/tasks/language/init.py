"""`weft init language`: a recipe for a user's running text."""

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal

import regex

from weft.data.plain import PlainText, no_words
from weft.data.several import called, repeats
from weft.errors import DataError
from weft.tasks.init import (
    FEWEST,
    TEST,
    TRAIN,
    VALID,
    ModelCandidate,
    Option,
    Survey,
    TemplateInit,
    Train,
    Trial,
    each,
    files_of,
    only,
    planned,
    splits,
    survey,
)
from weft.wording import plural
from weft.words import LETTERS

Kind = Literal["space", "word", "character", "bpe"]
SMALL = 2_000_000  # characters
WRITTEN = 12
"""Lines that `weft predict` writes, enough to see a verse."""
TRIAL = Trial(
    (
        ModelCandidate("lstm", "a recurrent network", updates=1500),
        ModelCandidate("mixture", "the same mixed with an n-gram model of the training text", updates=1500),
    ),
    untried="lstm",
    fewest=20_000,
    unit="character",
    most=SMALL,
    part="character",
)
_LOOSE = re.compile(r"(?<=\S) [.,;:?!](?= |$)", re.MULTILINE)
_TIGHT = regex.compile(rf"(?<={LETTERS}|_)[.,;:?!](?= |$)", regex.MULTILINE)


class LanguageInit(TemplateInit):
    """A recipe for a text, with a choice of tokens and model."""

    about: ClassVar[str] = "A language model for plain text."
    examples: ClassVar = ("plays.txt --kind character --model gpt",)
    options: ClassVar = (
        TRAIN._replace(help="Training text; may be compressed."),
        VALID,
        TEST,
        Option(
            "kind",
            "Kind of tokens. Default: chosen from the text.",
            choices=("space", "word", "character", "bpe"),
        ),
        *TRIAL.options(ModelCandidate("gpt", "a Transformer")),
    )
    trial: ClassVar = TRIAL
    reads: ClassVar = "texts"
    several: ClassVar = True

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        train, valid, test = files_of(given)
        kind: Kind | None = given["kind"]
        lines = _Lines(train)
        seen = lines.survey()
        texts = [(str(file), filter(str.strip, PlainText(file))) for file in each(train)]
        for note in [*lines.text.notes, *(repeats(texts) if texts[1:] else ())]:
            say(note)
        for path in (valid, test):
            if path is not None:
                _Lines(path).survey()
        if valid is None and seen.texts < FEWEST:
            first = each(train)[0]
            how = "add text, or --valid"
            if seen.words > 100 * FEWEST:
                how = f"break its lines: fold -s -w 1000 {shlex.quote(str(first))} > TEXT"
            raise DataError(f"expected {FEWEST} lines or more, got {seen.texts}; {how}", path=first)
        kind = kind or lines.kind(seen)
        gpt = given["model"] == "gpt"
        width, epochs = (200, 10) if seen.characters < 10 * SMALL else (512, 4)
        length = (128 if gpt else 64) if kind == "character" else (64 if gpt else 35)
        tokens = seen.characters if kind == "character" else seen.words
        return {
            "examples": seen.characters,
            "parts": seen.characters,
            "name": called([*map(str, each(train))]),
            "counted": plural(seen.texts, "line"),
            "words": seen.counted(seen.words),
            "different": f"{len(seen.seen):,}",
            **splits(train, valid, test),
            "kind": f"bpe, size: {lines.pieces(seen)}" if kind == "bpe" else kind,
            "lstm": only(not gpt),
            "gpt": only(gpt),
            "mixed": only(given["model"] == "mixture"),
            "unmixed": only(given["model"] != "mixture"),
            "length": length,
            "lines": WRITTEN,
            # some lines are longer than most, and a word may be two pieces
            "written": min(2000, max(100, math.ceil(2 * WRITTEN * tokens / seen.texts))),
            "width": width + width % 8,
            **planned(tokens / (20 * length), epochs=epochs, warmup=200)._asdict(),
        }


class _Lines:
    """The lines of a text, and whether its punctuation stands by itself, as in tokenised text."""

    def __init__(self, path: Train) -> None:
        self.text = PlainText(each(path))
        self.loose = self.tight = 0
        self.marks: set[str] = set()

    def __iter__(self) -> Iterator[tuple[str]]:
        for line in self.text:
            self.marks.update(line)
            self.loose += len(_LOOSE.findall(line))
            self.tight += len(_TIGHT.findall(line))
            yield (line,)

    def survey(self) -> Survey:
        """Read all of them once."""
        seen = survey(self)
        if not seen.words:
            raise no_words(self.text.path)
        return seen

    def kind(self, seen: Survey) -> Kind:
        """The vocabulary that suits the text."""
        if (self.loose > self.tight or "<unk>" in seen.seen) and len(seen.seen) <= 50_000:
            return "space"
        return "bpe" if len(seen.seen) > 5_000 else "word"

    def pieces(self, seen: Survey) -> int:
        """A size that byte-pair encoding can reach."""
        least = len(self.marks) + 5
        usual = 2000 if seen.characters < SMALL else 8000
        return max(least, min(usual, least + seen.repeated // 2))
