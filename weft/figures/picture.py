"""Save figures as PNG, SVG or PDF, atomically and reproducibly.

This does not use pyplot, so it has no side effects in servers and notebooks.
Read next: alignment.py, charts.py.
"""

import io
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from weft.errors import ConfigError
from weft.figures.fonts import BROWSER, readable
from weft.store import files

DOTS_PER_INCH = 200
MAX_PIXELS = 3200
MARGIN = 0.12
"""White margin around a figure, in inches."""


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file in the format of its extension."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".png":
        data = png(figure)
    elif suffix == ".svg":
        data = svg(figure).encode()
    elif suffix == ".pdf":
        data = pdf(figure)
    else:
        raise ConfigError(
            f"{path}: pictures are written as .png, .svg or .pdf, not {suffix or 'without a suffix'}"
        )
    with files.refusals(path, "choose another place"):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, data)


def png(figure: Figure) -> bytes:
    """The figure as PNG, at most about MAX_PIXELS wide and high."""
    out = io.BytesIO()
    with readable(figure, keep_text=False):
        _print(FigureCanvasAgg(figure), out, "png", {"Software": None})
    return out.getvalue()


def for_notebook(figure: Figure) -> Figure:
    """The figure, which a notebook now shows without pyplot."""
    size = {"width": round(80 * figure.get_figwidth())}
    figure._repr_png_ = lambda: (png(figure), size)  # type: ignore[attr-defined]
    return figure


def svg(figure: Figure) -> str:
    """The figure as SVG with real text, which is searchable and uses the reader's fonts."""
    out = io.StringIO()
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "weft"}
    with readable(figure, keep_text=True) as families, matplotlib.rc_context(settings):
        _print(FigureCanvasSVG(figure), out, "svg", {"Date": None, "Creator": "Weft"})
    # name fonts once for all texts, because the reader's machine has other ones
    ours = "; font-family: " + ", ".join(repr(name) for name in families)
    return out.getvalue().replace(ours, "").replace("<svg ", f'<svg font-family="{BROWSER}" ', 1)


def pdf(figure: Figure) -> bytes:
    """The figure as PDF, with its fonts embedded as TrueType, which journals ask for."""
    out = io.BytesIO()
    with readable(figure, keep_text=False), matplotlib.rc_context({"pdf.fonttype": 42}):
        _print(FigureCanvasPdf(figure), out, "pdf", {"CreationDate": None, "Creator": "Weft"})
    return out.getvalue()


def _print(canvas: FigureCanvasBase, out: io.IOBase, form: str, metadata: dict[str, str | None]) -> None:
    """Print a figure without dates, so equal figures give equal bytes, with dots enough for a slide."""
    canvas.print_figure(
        out,  # type: ignore[arg-type]
        format=form,
        dpi=min(DOTS_PER_INCH, MAX_PIXELS / max(canvas.figure.get_size_inches())),
        bbox_inches="tight",
        pad_inches=MARGIN,
        facecolor="white",
        metadata=metadata,
    )
