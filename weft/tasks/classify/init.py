"""`weft init classify`: a recipe for a user's labelled texts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from weft.errors import DataError
from weft.tasks.init import TEST, TRAIN, VALID, Init, NewRecipe, Option, filled, only, quoted, splits
from weft.tasks.survey import VALID_NAMES, Survey, sibling, survey
from weft.wording import plural

if TYPE_CHECKING:
    from weft.data.labelled import LabelledText, Labels

FEW = 1000
"""Texts below which a linear model of words and pairs is the safer choice."""

FORM = (
    Option("text", "Column of a table that holds the text. Default: guessed, and printed."),
    Option("label", "Column of a table that holds the class. Default: guessed, and printed."),
    Option(
        "labels",
        "How a line names its class: __label__CLASS (marked), its first word (first), or its first word up "
        "to the colon (coarse).",
        choices=("marked", "first", "coarse"),
        default="marked",
    ),
    Option("separator", 'Separator between the labels of a text (several or none), such as "|".'),
    Option("encoding", "Encoding of the files, such as latin-1.", default="utf-8"),
)
"""Options that say how the files are read."""


class Classify(Init):
    """Reads labelled texts, lines or a table."""

    about: ClassVar[str] = "A classifier for texts."
    examples: ClassVar = (
        "reviews.tsv --label stars",
        "train_5500.label --labels coarse --encoding latin-1",
    )
    options: ClassVar = (
        TRAIN._replace(help="Training file: lines __label__CLASS TEXT, or a .tsv or .csv table."),
        VALID,
        TEST,
        *FORM,
    )

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        from weft.tasks.classify.check import columns  # loads torch

        train, encoding = given["train"], given["encoding"]
        text, label, note = columns(train, given["text"], given["label"], encoding)
        if note:
            say(note)
        form = {"text": text, "label": label, "labels": given["labels"]}
        form |= {"separator": given["separator"], "encoding": encoding}
        written = recipe(train, given["valid"], given["test"], **form)
        usual = {"text": "text", "label": "label", "labels": "marked", "separator": None}
        usual |= {"encoding": "utf-8"}
        said = [word for name in form if form[name] != usual[name] for word in (f"--{name}", form[name])]
        return NewRecipe(written, [(*self.check(train), *said)])


def recipe(
    train: Path,
    valid: Path | None,
    test: Path | None,
    *,
    text: str,
    label: str,
    labels: "Labels" = "marked",
    separator: str | None = None,
    encoding: str = "utf-8",
) -> str:
    """A commented recipe.

    Args:
        train, valid, test: labelled texts; the last two default to the files next to the first.
        text, label: columns of a table; labels, encoding: see LabelledText.
        separator: between the labels of a text that may have several or none.

    Raises:
        DataError: files are missing or damaged, or hold one class only.
    """
    from weft.data.labelled import OPTIONS, LabelledText, kind_of  # loads torch
    from weft.tasks.labels.splits import held_out  # loads torch

    columns: dict[str, Any] = {"text": text, "label": label, "labels": labels, "encoding": encoding}
    texts = LabelledText(train, **columns, named=OPTIONS, unlabelled=separator is not None)
    seen, classes = _classes(texts, separator)
    few = seen.texts < FEW
    names = [f"{name} {count:,}" for name, count in classes.most_common(6)]
    table = kind_of(train) != "lines"
    valid, test = valid or sibling(train, VALID_NAMES), test or sibling(train, ("test",))
    every = None if valid else held_out(seen.texts)
    return filled(
        "classify",
        {
            "counted": f"{plural(len(classes), 'class')}, {plural(seen.texts, 'training text')}",
            "mean": f"{seen.mean:.0f}",
            "longest": f"{seen.longest:,}",
            "classes": ", ".join([*names, "..."] if len(classes) > 6 else names),
            **splits(train, valid, test),
            "text": quoted(text) if table else None,
            "label": quoted(label) if table else None,
            "labels": labels if labels != "marked" else None,
            "separator": None if separator is None else quoted(separator),
            "encoding": encoding if encoding != "utf-8" else None,
            "every": f"{every:<2}" if every else None,
            "kept": plural(seen.texts // every, "text") if every else None,
            "size": "null" if few else 20000,
            "few": only(few),
            "many": only(not few),
            "metric": "loss" if few else "accuracy",
        },
    )


def _classes(texts: "LabelledText", separator: str | None) -> tuple[Survey, Counter[str]]:
    from weft.tasks.classify.data import names_of  # loads torch

    counts: Counter[str] = Counter()

    def counted() -> Iterator[tuple[str]]:
        for one in texts:
            counts.update(names_of(one.label, separator))
            yield (one.text,)

    seen = survey(counted(), most=0)
    if len(counts) < (2 if separator is None else 1):
        raise DataError(
            f"expected at least 2 classes, got {len(counts)}; see weft data check", path=texts.path
        )
    return seen, counts
