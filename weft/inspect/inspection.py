"""A run looked into: its subject, its views, the page and the files of `weft inspect`.

Read next: subjects/subject.py, views/view.py, page/html.py.
"""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import weft.inspect.subjects
import weft.inspect.views
from weft import __version__, rooms
from weft.errors import ConfigError
from weft.inspect.page.html import Head, page
from weft.inspect.views.view import View
from weft.run import Opened
from weft.tasks.shared.inspected.inspected import Kind, Subject, checked

Format = Literal["svg", "png", "csv", "json"]


def subject_of(opened: Opened, text: str | None, series: str | None = None) -> Subject:
    """What a run makes of a text; of an example of its own where it is None.

    Args:
        opened: the run.
        text: or the path of a file, for a task that reads files.
        series: of a table of several, the one to look at.

    Raises:
        DataError: the text is empty, too long, or nothing that the model can read.
        ConfigError: a series is named where there are none.
    """
    kind: Any = rooms.get(weft.inspect.subjects, Kind, opened.name)
    if kind is None:  # a task that nobody wrote a subject for: the run's own views are left
        return Subject(opened=opened, text="" if text is None else checked(text), answer="")
    one = kind()
    if series is not None:
        if not one.has_series:
            raise ConfigError(f"--series: a run of the task {opened.name} reads no series; leave it out")
        one.series = series
    return one.read(opened, text)  # type: ignore[no-any-return]


def views_of(subject: Subject) -> list[View]:
    """Every view that applies, in the order of the page."""
    kinds: list[Any] = list(rooms.parts(weft.inspect.views, View).values())
    found = [kind.collect(subject) for kind in sorted(kinds, key=lambda kind: kind.order)]
    return [view for view in found if view is not None]


def page_of(subject: Subject, views: Sequence[View]) -> str:
    """The HTML file."""
    opened = subject.opened
    parameters = sum(parameter.numel() for parameter in opened.model.parameters())
    facts = [
        ("run", opened.path.resolve().name),
        ("task", f"{opened.name}, {opened.task.about()}"),
        ("parameters", f"{parameters:,}"),
        ("Weft", __version__),
    ]
    title = f"weft inspect {opened.path.resolve().name}"
    return page(Head(title, facts, subject.text, subject.answer), views)


def name_of(view: View) -> str:
    """The name of a view's files, such as search-tree."""
    return view.title.lower().replace(" ", "-")


def file_of(view: View, form: Format) -> bytes:
    """A view as the bytes of a file."""
    if form in ("svg", "png"):
        from weft.figures.picture import png, svg

        return svg(view.figure()).encode() if form == "svg" else png(view.figure())
    if form == "json":
        whole = {"view": view.title, "blocks": view.json()}
        return (json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "replace")
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(view.table())
    return out.getvalue().encode("utf-8", "replace")


def write_views(views: Sequence[View], folder: Path, forms: Sequence[Format]) -> list[Path]:
    """Files of all views in a folder that is there; their paths."""
    from weft.train import files

    written = []
    for view in views:
        for form in forms:
            path = folder / f"{name_of(view)}.{form}"
            files.replace(path, file_of(view, form))
            written.append(path)
    return written
