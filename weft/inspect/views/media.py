"""Pictures and recordings with the attention of the model: bright where the weights are, or over time.

Read next: ../page/picture.js; ../../tasks/inspection.py, which makes the weights.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from weft.data.images import data_uri
from weft.figures.axes import blank
from weft.figures.colours import INK
from weft.figures.records import Figure, Heard
from weft.inspect.views.view import Block, View, matrix, said
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection, PictureWeights

DRAWN = 30  # maximum number of pictures in a figure; the page and the table have all


class PictureView(View):
    """A picture, bright where the attention is."""

    title = "Picture"
    order = 8

    def __init__(self, picture: PictureWeights) -> None:
        self.picture = picture
        self.flat = strip(picture.pixels)
        self.looks = [(name, strip(weights[..., None])[..., 0]) for name, weights in picture.looks]

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "PictureView | None":
        return None if subject.picture is None else cls(subject.picture)

    def blocks(self) -> list[Block]:
        words = f"The picture, and {self.picture.what}: brightest at the largest weight."
        clip = " Frames are shown side by side, in order." if self.picture.pixels.ndim == 4 else ""
        if not self.looks:
            words = "The picture. This model has no attention to show."
        return [
            said(words + clip),
            {
                "kind": "picture",
                "image": data_uri(self.flat),
                "width": self.flat.shape[1],
                "height": self.flat.shape[0],
                "items": [{"name": name, "values": weights} for name, weights in self.looks],
            },
        ]

    def table(self) -> Iterable[Sequence[object]]:
        """One row per weight; the frames of a clip follow each other as columns."""
        yield "look", "name", "row", "column", "weight"
        if not self.looks:
            yield 0, "(none)", 0, 0, 0.0
        for number, (name, weights) in enumerate(self.looks, 1):
            for (row, column), weight in np.ndenumerate(weights):
                yield number, name, row + 1, column + 1, float(weight)

    def figure(self) -> "Figure":
        """The picture, and next to it the picture with each set of weights."""
        from weft.figures.sheets import DARKEST, lit_pictures

        shown, wide = self.looks[:DRAWN], self.flat.shape[1] > 2 * self.flat.shape[0]
        figure = lit_pictures(self.flat, shown, wide=wide)
        if shown:
            from matplotlib.cm import ScalarMappable
            from matplotlib.colors import LinearSegmentedColormap

            shades = LinearSegmentedColormap.from_list("light", [(1 - DARKEST,) * 3, (1.0,) * 3])
            bar = figure.colorbar(
                ScalarMappable(cmap=shades), ax=figure.axes, ticks=[0, 0.5, 1], pad=0.01, shrink=0.7
            )
            bar.set_label("weight, relative to the number above", fontsize=8, color=INK)
            bar.ax.tick_params(labelsize=7)
        return figure


def strip(clip: np.ndarray) -> np.ndarray:
    """[time, height, width, C] as frames side by side [height, time x width, C]; one picture is unchanged."""
    return np.concatenate(list(clip), 1) if clip.ndim == 4 else clip


class HeardView(View):
    """Sound over time, and the attention of each character."""

    title = "Recording"
    order = 7

    def __init__(self, heard: Heard, text: str) -> None:
        self.heard, self.text = heard, text

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "HeardView | None":
        return None if subject.heard is None else cls(subject.heard, subject.answer)

    def blocks(self) -> list[Block]:
        """The spectrogram; below it, over the same time, the attention."""
        heard = self.heard
        bands = heard.frames.shape[1]
        seconds = [f"{n * heard.hop:.2f} s" for n in range(len(heard.frames))]
        loud = heard.frames.T[::-1] - heard.frames.min()
        names = [str(n) for n in range(bands, 0, -1)]
        items = [matrix("frames", loud, names, seconds, high=max(float(loud.max()), 1e-6))]
        if heard.pieces:
            spread = heard.weights.repeat(heard.stride, 1)[:, : len(heard.frames)]
            top = max(float(spread.max()), 1e-6)
            items.append(matrix("where each character listened", spread, heard.pieces, seconds, high=top))
        groups = [{"name": "recording", "items": items}]
        return [
            said(
                f"{len(heard.frames)} frames of {bands} bands on a mel scale, the highest above, darker "
                "where it is louder. The decoder looks at "
                f"{heard.weights.shape[1]} places of {heard.stride} frames."
            ),
            {"kind": "matrices", "pick": "recording", "each": "shown", "groups": groups},
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield "seconds", "band", "value"
        for n, frame in enumerate(self.heard.frames.tolist()):
            for band, value in enumerate(frame, 1):
                yield round(n * self.heard.hop, 4), band, value

    def figure(self) -> "Figure":
        from weft.figures.series import heard_figure, spectrogram

        if self.heard.pieces:
            return heard_figure(self.heard, title=self.text)
        figure = blank(8, 3)
        axes = figure.subplots()
        spectrogram(axes, self.heard)
        axes.set(xlabel="seconds")
        axes.set_title(self.text, color=INK, fontsize=10, parse_math=False)
        return figure
