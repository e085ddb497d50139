"""`weft init summarise`: a recipe for a user's texts and their summaries."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from weft.data.guess import columns_of, sides_of
from weft.data.parallel import ParallelText
from weft.data.tables import header_of, is_table
from weft.tasks.init import (
    SMALL,
    TEST,
    TRAIN,
    VALID,
    VALID_NAMES,
    NewRecipe,
    Option,
    TemplateInit,
    Train,
    as_pairs,
    each,
    examples_held_out,
    planned,
    quoted,
    sibling_pairs,
    splits,
    survey_pairs,
)
from weft.wording import plural

TEXTS = "text", "dialogue", "document", "article", "body", "content", "source"
SUMMARIES = "summary", "highlights", "headline", "abstract", "title", "target"
"""Usual names of the columns; they decide before the lengths of their texts."""

WORDS = 15  # typical length of a summary; Survey counts the longer side
USUAL = 10_000  # words of the vocabulary


def guessed(given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, Any]:
    """The options with the columns that `weft data check` guesses, if none is named or has its usual name."""
    train, usual = each(given["train"])[0], ("text", "summary")
    if (given["text"], given["summary"]) != usual or not is_table(train) or {*usual} <= {*header_of(train)}:
        return given
    names = {name.lower(): name for name in header_of(train)}
    named = [[names[word] for word in words if word in names] for words in (TEXTS, SUMMARIES)]
    found = (named[0][0], named[1][0]) if all(named) else sides_of(columns_of(train))
    if found is None:
        return given
    text, summary = found
    say(
        f"{train}: columns {text!r} and {summary!r} are read as text and summary; --text and --summary "
        "name others"
    )
    return {**given, "text": text, "summary": summary}


class SummariseInit(TemplateInit):
    """A recipe for texts and their summaries, in two columns or two files."""

    about: ClassVar[str] = "A summariser for texts."
    details: ClassVar[str] = (
        "Texts and summaries are two columns of a table (.csv, .tsv, .xlsx), or two files."
    )
    examples: ClassVar = ("data/train.tsv --text article --summary headline",)
    cells: ClassVar = ("text", "summary")
    several: ClassVar = True
    options: ClassVar = (
        TRAIN._replace(help="Training data: a table, or PREFIX of two files."),
        Option("text", "Column, or file ending, of the texts.", default="text"),
        Option("summary", "Column, or file ending, of the summaries.", default="summary"),
        VALID._replace(
            help="Validation data. Default: the files next to the training data, else texts held out of it."
        ),
        TEST._replace(help="Test data. Default: the files next to the training data, if any."),
    )

    def with_files(self, given: Mapping[str, Any], files: Sequence[Path]) -> dict[str, Any]:
        return super().with_files(given, as_pairs(files))

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        given = guessed(given, say)
        text = ParallelText(given["train"], given["text"], given["summary"])
        for note in [*text.notes, *text.repeats()]:
            say(note)
        usual = (given["text"], given["summary"]) == ("text", "summary")  # the check looks for these
        columns = (
            ("--source", given["text"], "--target", given["summary"])
            if is_table(text.files[0]) and not usual
            else ()
        )
        files = text.files
        return super().write(given, say)._replace(steps=[(*self.check(*dict.fromkeys(files)), *columns)])

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        train: Train = given["train"]
        source, target = given["text"], given["summary"]
        valid = given["valid"] or sibling_pairs(train, VALID_NAMES, source, target)
        test = given["test"] or sibling_pairs(train, ("test",), source, target)
        seen, repeated = survey_pairs(train, source, target)
        width = 128 if seen.texts < SMALL else 256
        return {
            "counted": plural(seen.texts, "text"),
            "longest": seen.counted(seen.longest),
            "source": quoted(source),
            "target": quoted(target),
            **splits(train, valid, test),
            "every": examples_held_out(seen.texts),
            "kept": f"size: {USUAL}" if repeated > USUAL else "size: null, min_count: 2",
            "width": width,
            "wide": width * 3 // 2,
            **planned(seen.texts * WORDS / 600, epochs=10, warmup=200)._asdict(),
        }
