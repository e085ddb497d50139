"""The page and the files of `weft inspect`: all views of one input.

Read next: ../tasks/inspection.py, views/view.py, page/html.py.
"""

import csv
import io
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import weft.inspect.views
from weft import rooms
from weft.errors import ConfigError
from weft.figures.records import Figure
from weft.inspect.frame import InspectorFrame
from weft.inspect.page.html import PageHead, page
from weft.inspect.views.curves import CurvesView, last_sources
from weft.inspect.views.view import View
from weft.run import LoadedRun
from weft.store import files
from weft.tasks.inspection import LONGEST, Examples, Inspection
from weft.tasks.task import InspectionSettings
from weft.version import __version__

Format = Literal["svg", "png", "csv", "json"]


def inspection_of(
    opened: LoadedRun, text: str | None, settings: InspectionSettings | None = None
) -> Inspection:
    """Run the model on a text, or on an example of the run if it is None."""
    asked = opened.task.inspection_settings.of(settings)
    asked = replace(asked, text=text, examples=examples(opened.path))
    return opened.pipeline.inspection(opened.model, asked)


def examples(run: Path) -> Examples:
    """The sources of the last validation, from metrics.jsonl."""
    found = last_sources(run / "metrics.jsonl")
    return Examples([one[:LONGEST] for one in sorted(found, key=len)], str(run))


def kinds() -> dict[str, type[View]]:
    """All views by name, in the order of the page."""
    found: list[Any] = rooms.classes(weft.inspect.views, View)
    return {name_of(kind): kind for kind in sorted(found, key=lambda kind: kind.order)}


def views_of(
    opened: LoadedRun, inspection: Inspection, only: Collection[str] = (), more: Sequence[type[View]] = ()
) -> list[View]:
    """Every view that applies, in the order of the page."""
    chosen = [kind for name, kind in kinds().items() if not only or name in only]
    chosen = sorted([*chosen, *more], key=lambda kind: kind.order)
    found = [kind.collect(opened, inspection) for kind in chosen]
    return [view for view in found if view is not None]


def page_of(opened: LoadedRun, inspection: Inspection, views: Sequence[View]) -> str:
    """One HTML page with all views, which needs no other file."""
    parameters = sum(parameter.numel() for parameter in opened.model.parameters())
    facts = [
        ("run", opened.path.resolve().name),
        ("task", f"{opened.name}, {opened.task.about()}"),
        ("parameters", f"{parameters:,}"),
        ("Weft", __version__),
    ]
    title = f"weft inspect {opened.path.resolve().name}"
    return page(PageHead(title, facts, inspection.text, inspection.answer), views)


def name_of(view: View | type[View]) -> str:
    """The name of a view and its files, such as search-tree."""
    return view.title.lower().replace(" ", "-")


def file_of(view: View, form: Format) -> bytes:
    """A view as the bytes of an SVG, PNG, JSON or CSV file."""
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
    """Write each view as files into an existing folder; returns their paths."""
    paths = []
    for view in views:
        for form in forms:
            path = folder / f"{name_of(view)}.{form}"
            files.replace(path, file_of(view, form))
            paths.append(path)
    return paths


def shown(opened: LoadedRun, text: str | None, view: str = "") -> InspectorFrame:
    """The page of one input, for a notebook, open at a view."""
    subject = inspection_of(opened, text)
    views = views_of(opened, subject)
    names = [name_of(one) for one in views]
    if view and view not in names:
        raise ConfigError(f"inspect: expected a view of this run ({', '.join(names)}), got {view!r}")
    first = views[names.index(view) if view else 0]
    with TemporaryDirectory() as folder:
        page, picture = Path(folder, "inspect.html"), Path(folder, f"{name_of(first)}.svg")
        page.write_text(page_of(opened, subject, views), "utf-8")
        picture.write_bytes(file_of(first, "svg"))
        return InspectorFrame(page, picture)


def curves_of(opened: LoadedRun) -> "Figure":
    """The curves of a training."""
    found = CurvesView.collect(opened, Inspection(text="", answer=""))
    if found is None:
        raise ConfigError(
            f"{opened.path}: has no curves, as its training logged no update; a linear model is solved at "
            "once: give plot texts and labels, for their scores"
        )
    return found.figure()
