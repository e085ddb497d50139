"""Drawn pictures: each as a PNG of its own pixels, enlarged, and a sheet of all with their captions."""

import textwrap
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from weft import files
from weft.errors import ConfigError
from weft.figures.answers import Look, refusing
from weft.figures.colours import INK
from weft.figures.picture import save

COLUMNS = 8
LARGE = 192
"""Pixels of a side that a picture is enlarged to at least, each pixel a square."""


class DrawLook(Look):
    """1.png, 2.png, ... and, when all are drawn, sheet.png and sheet.svg."""

    def __enter__(self) -> "DrawLook":
        if self.alignments is not None:
            raise ConfigError("--alignments: pictures have none; look at the sheet of --plot DIR")
        super().__enter__()
        self._drawn: list[tuple[str, np.ndarray]] = []
        return self

    def see(self, look: Any) -> None:
        """Keep one picture."""
        if self.plot is None or self.drawn >= self.limit:
            return
        self.drawn += 1
        text, picture = look
        self._drawn.append((text, picture))
        times = -(-LARGE // max(picture.shape[:2]))
        large = picture.repeat(times, 0).repeat(times, 1)
        path = self.plot / f"{self.drawn}.png"
        with refusing(path), files.replacing(path) as file:
            Image.fromarray(large).save(file, "png")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.plot is not None and self._drawn and error is None:
            figure = sheet(self._drawn)
            for suffix in ("png", "svg"):
                save(figure, Path(self.plot) / f"sheet.{suffix}")


def sheet(drawn: list[tuple[str, np.ndarray]]) -> Figure:
    """Pictures in rows, each below its caption."""
    columns = min(COLUMNS, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = Figure(figsize=(1.5 * columns, 1.85 * rows), facecolor="white", layout="constrained")
    places = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for place in places:
        place.set(xticks=[], yticks=[])
        place.spines[:].set_visible(False)
    for place, (text, picture) in zip(places, drawn, strict=False):
        place.imshow(picture, interpolation="nearest")
        place.spines[:].set_visible(True)
        place.spines[:].set_color("#dfe4ec")
        shown = "\n".join(textwrap.wrap(text, 20)[:3])
        place.set_title(shown, fontsize=7, color=INK, parse_math=False)
    return figure
