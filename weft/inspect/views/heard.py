"""A recording: its bands over time, and where each character listened."""

from collections.abc import Iterable, Sequence

from weft.figures.axes import blank
from weft.figures.colours import INK
from weft.figures.records import Figure, Heard
from weft.inspect.views.view import Block, View, matrix, said
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection


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
