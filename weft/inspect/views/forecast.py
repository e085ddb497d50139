"""A forecast after its past, with quantiles."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.inspect.views.view import Block, View, chart, series
from weft.run import Opened
from weft.tasks.shared.inspected.inspected import Inspected

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ForecastView(View):
    """One series.

    Args:
        look: what the forecaster said of it.
    """

    title = "Forecast"
    order = 5

    def __init__(self, look: Any) -> None:
        self.look = look

    @classmethod
    def collect(cls, opened: Opened, subject: Inspected) -> "ForecastView | None":
        """Where something was forecast."""
        return None if subject.forecast is None else cls(subject.forecast)

    def blocks(self) -> list[Block]:
        """Past, forecast, quantiles, over dates where the series has them."""
        look = self.look
        dated = look.times.dtype.kind == "M"
        past, ahead = np.arange(-len(look.past) + 1, 1), np.arange(1, len(look.best) + 1)
        if dated:
            past, ahead = (
                times.astype("datetime64[s]").astype(np.int64) for times in (look.past_times, look.times)
            )
        lines = [
            series("measured", past, look.past, colour=-1),
            series("forecast", ahead, look.best, colour=0),
        ]
        if look.came is not None:
            lines.append(series("actual", ahead, look.came, dashed=True, colour=-1))
        bands = []
        if look.quantiles is not None:
            for outer in range(len(look.levels) // 2):
                low, high = (look.quantiles[:, place].astype(float) for place in (outer, -1 - outer))
                share = look.levels[-1 - outer] - look.levels[outer]
                bands.append({"name": f"{share:.0%} band", "x": ahead, "low": low, "high": high, "colour": 0})
        x = "time" if dated else "steps from now"
        return [chart(look.name or "series", x, "value", lines, dates=dated, bands=bands)]

    def table(self) -> Iterable[Sequence[object]]:
        """A row for each time."""
        look = self.look
        levels = look.levels if look.quantiles is not None else ()
        yield "time", "measured", "forecast", *(f"q{level:g}" for level in levels)
        for time, value in zip(look.past_times, look.past.tolist(), strict=True):
            yield str(time), value, "", *("" for _ in levels)
        for n, time in enumerate(look.times):
            quantiles = look.quantiles[n].tolist() if look.quantiles is not None else []
            yield str(time), "", float(look.best[n]), *quantiles

    def figure(self) -> "Figure":
        """The picture of `weft predict --plot`."""
        from weft.tasks.forecast.answer_figure import draw

        return draw(self.look)
