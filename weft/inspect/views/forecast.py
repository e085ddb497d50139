"""A forecast after its past, with quantiles."""

from collections.abc import Iterable, Sequence

import numpy as np

from weft.figures.records import Figure, ForecastRecord
from weft.inspect.views.view import Block, View, chart, series
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection


class ForecastView(View):
    """Past values, the forecast and its intervals."""

    title = "Forecast"
    order = 5

    def __init__(self, forecast: ForecastRecord) -> None:
        self.forecast = forecast

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "ForecastView | None":
        return None if subject.forecast is None else cls(subject.forecast)

    def blocks(self) -> list[Block]:
        one = self.forecast
        dated = one.times.dtype.kind == "M"
        past, ahead = np.arange(-len(one.past) + 1, 1), np.arange(1, len(one.best) + 1)
        if dated:
            past, ahead = (
                times.astype("datetime64[s]").astype(np.int64) for times in (one.past_times, one.times)
            )
        lines = [
            series("measured", past, one.past, colour=-1),
            series("forecast", ahead, one.best, colour=0),
        ]
        if one.actual is not None:
            lines.append(series("actual", ahead, one.actual, dashed=True, colour=-1))
        bands = []
        if one.quantiles is not None:
            for outer in range(len(one.levels) // 2):
                low, high = (one.quantiles[:, place].astype(float) for place in (outer, -1 - outer))
                share = one.levels[-1 - outer] - one.levels[outer]
                bands.append({"name": f"{share:.0%} band", "x": ahead, "low": low, "high": high, "colour": 0})
        x = "time" if dated else "steps from now"
        return [chart(one.name or "series", x, "value", lines, dates=dated, bands=bands)]

    def table(self) -> Iterable[Sequence[object]]:
        one = self.forecast
        levels = one.levels if one.quantiles is not None else ()
        yield "time", "measured", "forecast", *(f"q{level:g}" for level in levels)
        for time, value in zip(one.past_times, one.past.tolist(), strict=True):
            yield str(time), value, "", *("" for _ in levels)
        for n, time in enumerate(one.times):
            quantiles = one.quantiles[n].tolist() if one.quantiles is not None else []
            yield str(time), "", float(one.best[n]), *quantiles

    def figure(self) -> "Figure":
        """The picture of `weft predict --pictures`."""
        from weft.figures.series import forecast_figure

        return forecast_figure(self.forecast)
