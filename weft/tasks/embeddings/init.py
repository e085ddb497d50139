"""`weft init embeddings`: a recipe for a user's text."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from weft.data.plain import no_words
from weft.data.vectors import read_questions
from weft.tasks.init import TEST, TRAIN, TemplateInit, splits, survey
from weft.wording import plural


class EmbeddingsInit(TemplateInit):
    """A recipe for a text and, optionally, questions about its words."""

    about: ClassVar[str] = "Vectors for the words of a text."
    examples: ClassVar = ("text.txt",)
    reads: ClassVar = "texts"
    options: ClassVar = (
        TRAIN._replace(help="Plain text; may be compressed."),
        TEST._replace(help="Word pairs with their similarity, or analogies."),
    )

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        from weft.tasks.embeddings.data import WordsData  # loads torch

        train: Path = given["train"]
        test: Path | None = given["test"]
        lines = WordsData(train=str(train)).lines()
        seen = survey(((" ".join(words),) for words in lines), cut=str.split).seen
        total = seen.total()
        if not total:
            raise no_words(train)
        least = 5 if total >= 500_000 else 2 if total >= 20_000 else 1
        if test is not None:
            read_questions(test)
        return {
            "words": f"{total:,}",
            "kept": f"{sum(count >= least for count in seen.values()):,}",
            "different": f"{len(seen):,}",
            "times": plural(least, "time"),
            **splits(train, None, test),
            "least": least,
            "epochs": max(2, min(30, 10_000_000 // total)),
        }
