"""Which columns of a table hold texts and labels: those a user names, or a guess from their contents."""

from pathlib import Path

from weft.data.guess import Texts, columns_of, texts_of
from weft.data.labelled import kind_of


def columns(path: Path, text: str | None, label: str | None, encoding: str = "utf-8") -> tuple[str, str, str]:
    """The columns with the texts and the labels, and a sentence to print where they are a guess.

    Args:
        path: of the table, or of lines.
        text, label: the names that the user gives; None to guess.
        encoding: of the file.

    Raises:
        DataError: it cannot be read.
    """
    if (text and label) or kind_of(path) == "lines":
        return text or "text", label or "label", ""
    found = columns_of(path, encoding)
    names = {one.name for one in found}
    wrong = any(one is not None and one not in names for one in (text, label))
    if wrong or {text or "text", label or "label"} <= names:
        return text or "text", label or "label", ""
    guess = texts_of([one for one in found if one.name not in (text, label)] if label is None else found)
    if guess is None:
        return text or "text", label or "label", ""
    said = Texts(text or guess.text, label or guess.label)
    return (
        *said,
        f"{path}: column {said.text!r} is read as the text and {said.label!r} as its class; --text and "
        "--label name others",
    )
