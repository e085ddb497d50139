"""Where a transcript listened: its letters over the spectrogram, and the attention under it."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from weft.figures.answers import Look
from weft.figures.colours import GRID, INK, weight_colours
from weft.figures.picture import save
from weft.tasks.speech.predictor import Heard, Transcriber


class SpeechLook(Look):
    """A picture a recording, numbered as the recordings are."""

    predictor: Transcriber
    _number = 0

    def see(self, look: Any) -> None:
        """Draw one recording with its best transcript."""
        self._number += 1
        if self.plot is None or self.drawn >= self.limit:
            return
        frames, found = look
        figure = listened(self.predictor.align(frames, found.tokens), title=found.text)
        for suffix in ("png", "svg"):
            save(figure, self.plot / f"{self._number}.{suffix}")
        self.drawn += 1


def listened(heard: Heard, *, title: str) -> Figure:
    """The spectrogram with every piece at the middle of where it listened; below, its attention over time."""
    seconds = len(heard.frames) * heard.hop
    count = len(heard.pieces)
    figure = Figure(figsize=(min(16, max(6, 2.2 * seconds)), 3 + 0.16 * count), facecolor="white")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, max(1.0, 0.16 * count)])
    bands = heard.frames.shape[1]
    above.imshow(heard.frames.T, origin="lower", aspect="auto", extent=(0, seconds, 0, bands), cmap="Greys")
    width = heard.weights.shape[1] * heard.stride * heard.hop
    middle = (np.arange(heard.weights.shape[1]) + 0.5) * heard.stride * heard.hop
    for place, piece in enumerate(heard.pieces[:-1]):
        at = float(heard.weights[place] @ middle / max(heard.weights[place].sum(), 1e-9))
        above.axvline(at, color=GRID, linewidth=0.5)
        above.text(at, bands * 1.02, piece, ha="center", va="bottom", color=INK, fontsize=8)
    below.imshow(
        heard.weights, aspect="auto", extent=(0, width, count, 0), cmap=weight_colours(), vmin=0, vmax=1
    )
    below.set_yticks(np.arange(count) + 0.5, heard.pieces, fontsize=7)
    below.set(xlim=(0, seconds), xlabel="seconds")
    above.set(ylabel="mel bands")
    figure.suptitle(title, color=INK, fontsize=10)
    figure.tight_layout()
    return figure
