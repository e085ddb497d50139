"""A table of texts with the answers beside them: every column of the input, then what was predicted."""

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from weft.data.labelled import LabelledText, kind_of
from weft.errors import WeftError
from weft.tasks.classify.predictor import Classifier
from weft.tasks.each import each
from weft.tasks.shared.labels.data import LabelData
from weft.tasks.whole import Answer, unanswered

PREDICTED = "predicted"
WINDOW = 2000
"""Rows that are held at a time."""


def headed(data: LabelData, source: Path) -> LabelledText | None:
    """The table of a file whose first line names its columns; None of other files.

    Args:
        data: of the recipe, which names the column of the texts.
        source: the file.
    """
    if kind_of(source) == "lines":
        return None
    table = data.read(source, label=data.text)
    return table if table.headed else None


def answered(classifier: Classifier, table: LabelledText, classes: Sequence[str]) -> Iterator[Answer]:
    """The table with a column `predicted`, a line at a time, its header first.

    Args:
        classifier: at work.
        table: of texts.
        classes: those whose probabilities are columns too, all in the classifier's order, or none.
    """
    name = PREDICTED
    while name in table.names:
        name += "_"
    yield Answer(_line([*table.names, name, *(f"{name}={one}" for one in classes)], table.mark))
    rows = iter(table)
    while held := list(islice(rows, WINDOW)):
        for row, decided in zip(held, each([row.text for row in held], classifier.classify), strict=True):
            if isinstance(decided, WeftError):
                empty = _line([*row.cells.values(), "", *("" for _ in classes)], table.mark)
                yield unanswered(f"{table.path}:{row.number}", decided)._replace(text=empty)
                continue
            probs = [f"{prob:.4f}" for prob in decided.probs] if classes else []
            yield Answer(_line([*row.cells.values(), decided.label, *probs], table.mark), row.text)


def _line(cells: Sequence[str], mark: str) -> str:
    if mark == "\t":  # a .tsv is cut at tabs, whatever quotes are in it
        return mark.join(cells)
    text = io.StringIO()
    csv.writer(text, delimiter=mark, lineterminator="\n").writerow(cells)
    return text.getvalue().removesuffix("\n")
