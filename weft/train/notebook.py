"""Progress of a training in a notebook: a bar with the time left, the last validation and a curve.

Read next: reporting.py, the other reports; trackers.py, which chooses one.
"""

import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from weft.train.reporting import SECONDS_BETWEEN_DRAWINGS, Line, Reporter, measures, progress_text, score_text

WIDTH, HEIGHT = 420, 90
"""Of the curve, in pixels."""

SHOWN = 8
"""Number of the last sentences that are shown."""


class NotebookDisplay(Reporter):
    """One cell output, redrawn at most twice a second."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._said: list[str] = []
        self._step = self._figures = self._best = ""
        self._done = 0.0
        self._curve: dict[str, list[tuple[int, float]]] = {}
        self._next = 0.0
        self._handle: Any = display(HTML(""), display_id=True)

    def said(self, text: str) -> None:
        self._said.append(text)
        self._draw(force=True)

    def warned(self, text: str) -> None:
        self.said(f"warning: {text}")

    def progress(self, what: str, done: float, total: float | None = None) -> None:
        self._step, self._done = progress_text(what, done, total), done / total if total else 0.0
        self._draw(force=done == total)

    def moved(self, update: int, done: float) -> None:
        self._step, self._done = f"update {update:,}", done
        self._draw()

    def logged(self, line: Line) -> None:
        """Show the figures, and add the loss to the curve."""
        self._figures = " | ".join(measures(line))
        self._curve.setdefault("loss", []).append((line.update, line.loss))

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        """Show the scores, and add the first to the curve."""
        text = f"validation after update {update:,}: {score_text(scores)}"
        self._best = f"{text} (best so far)" if best else self._best
        name, value = next(iter(scores.items()))
        self._curve.setdefault(f"validation {name}", []).append((update, value))
        self._said.append(text + " (best so far)" * best)
        self._draw(force=True)

    def ending(self) -> None:
        self._step = ""
        self._draw(force=True)

    def close(self) -> None:
        self.ending()

    def _draw(self, *, force: bool = False) -> None:
        if not force and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + SECONDS_BETWEEN_DRAWINGS
        self._handle.update(self._html(self.page()))

    def page(self) -> str:
        """The output as HTML."""
        bar = f'<progress value="{self._done:.4f}" style="width: 16em"></progress>' if self._step else ""
        lines = "\n".join(map(escape, self._said[-SHOWN:]))
        about = " | ".join(filter(None, [self._step, self._figures if self._step else ""]))
        curves = "".join(map(curve, self._curve, self._curve.values()))
        return f"<div>{bar} {escape(about)}</div>{curves}<pre>{lines}</pre>"


def curve(name: str, points: Sequence[tuple[int, float]]) -> str:
    """A small picture of a line; empty with fewer than two finite points.

    Example:
        >>> curve("loss", [(1, 2.0)])
        ''
        >>> "loss: 2 to 1, updates 1 to 9" in curve("loss", [(1, 2.0), (9, 1.0)])
        True
    """
    finite = [(x, y) for x, y in points if abs(y) < float("inf")]
    if len(finite) < 2:
        return ""
    xs, ys = zip(*finite, strict=True)
    wide, high = max(xs) - min(xs) or 1, max(ys) - min(ys) or 1.0
    places = " ".join(
        f"{WIDTH * (x - min(xs)) / wide:.1f},{HEIGHT * (max(ys) - y) / high:.1f}" for x, y in finite
    )
    about = f"{name}: {ys[0]:.4g} to {ys[-1]:.4g}, updates {xs[0]:,} to {xs[-1]:,}"
    line = f'<polyline points="{places}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    box = f'viewBox="-2 -2 {WIDTH + 4} {HEIGHT + 4}" width="{WIDTH}" height="{HEIGHT}" role="img"'
    return f"<div>{escape(about)}</div><svg {box}>{line}</svg>"
