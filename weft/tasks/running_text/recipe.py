"""What `weft init` writes for a task that learns words in context from lines of text."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from weft.data.plain import PlainText, no_words
from weft.errors import DataError
from weft.tasks.init import TEST, TRAIN, VALID, TemplateInit, files_of, planned, splits, survey
from weft.wording import plural

FEWEST = 10
"""Lines of a text without validation text."""

MANY = 100_000
"""Words of a text whose rare words are left out."""


class ContextInit(TemplateInit):
    """A recipe for a text, a line at a time."""

    examples: ClassVar = ("text.txt",)
    options: ClassVar = (TRAIN._replace(help="Training text; may be compressed."), VALID, TEST)
    reads: ClassVar = "texts"
    epochs: ClassVar[int]

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        train, valid, test = files_of(given)
        seen = survey((line,) for line in PlainText(train))
        if not seen.words:
            raise no_words(train)
        if valid is None and seen.texts < FEWEST:
            why = f"expected {FEWEST} lines or more, got {seen.texts}; add text, or --valid"
            raise DataError(why, path=train)
        return {
            "name": train.name,
            "counted": plural(seen.texts, "line"),
            "words": seen.counted(seen.words),
            "different": f"{len(seen.seen):,}",
            **splits(train, valid, test),
            "least": 3 if seen.words >= MANY else 1,
            **planned(seen.words / 1000, epochs=self.epochs, warmup=100)._asdict(),
        }
