"""Forecasts as text, JSON and figures."""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from weft.errors import DataError
from weft.figures.records import Forecasted
from weft.tasks.predictor import Answer, Json

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Forecasts(Answer):
    """The next rows of series.

    Args:
        found: the forecast of each series.
        zone: UTC offset of their times, such as +00:00.
        quantiles: whether the text contains quantiles.
        plain: whether the JSON is a list of numbers, for a series that was given as numbers.
    """

    def __init__(
        self, found: Sequence[Forecasted], zone: str, *, quantiles: bool = False, plain: bool = False
    ) -> None:
        self.found = found
        self._zone = zone
        self._quantiles = quantiles
        self._plain = plain

    def text(self) -> str:
        """CSV rows: name, time, value and, if wanted, quantiles."""
        return "\n".join(_line(cells) for one in self.found for cells in self._rows(one, self._quantiles))

    def json(self) -> Json:
        """The numbers; for a table, a record for each row, with quantiles if the model has them.

        Raises:
            DataError: a forecast is infinite or NaN, which JSON cannot represent.
        """
        if self._plain:
            return [float(value) for value in self.found[0].best]
        records: list[Json] = []
        for one in self.found:
            names = ["y", *(f"q{level:g}" for level in one.levels)]
            for name, time, *numbers in self._rows(one, one.quantiles is not None):
                values = [float(number) for number in numbers]
                if not all(map(math.isfinite, values)):
                    raise DataError(
                        f"the forecast of {name!r} is not a number; check the last values of the series"
                    )
                records.append({"unique_id": name, "ds": time, **dict(zip(names, values, strict=False))})
        return records

    def figure(self) -> "Figure":
        from weft.figures.series import forecast_figure

        return forecast_figure(self.found[0])

    def figure_name(self) -> str:
        return file_name(self.found[0].name)

    def _rows(self, one: Forecasted, quantiles: bool) -> Iterator[list[str]]:
        times = _shown_times([*one.past_times, *one.times], self._zone)[len(one.past_times) :]
        for row, time in enumerate(times):
            found = one.quantiles[row] if one.quantiles is not None and quantiles else []
            yield [one.name, time, *(f"{value:.6g}" for value in (one.best[row], *found))]


def header(levels: Sequence[float]) -> str:
    """The header of the CSV, with a column for the quantile of each level."""
    return _line(["unique_id", "ds", "y", *(f"q{level:g}" for level in levels)])


def file_name(series: str) -> str:
    """The name of a series as a file name: letters, digits, dots and dashes.

    Example:
        >>> file_name("shop 7/Zagreb")
        'shop-7-Zagreb'
    """
    return re.sub(r"[^\w.]+", "-", series).strip("-.")[:80]


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)  # quotes cells where needed
    return text.getvalue().removesuffix("\n")


def _shown_times(times: Sequence[Any], zone: str) -> list[str]:
    """Times in one format: as dates if none has a time of day."""
    texts = [str(time).replace("T", " ") for time in times]
    days = all(text.endswith(" 00:00:00") for text in texts)
    return [text.removesuffix(" 00:00:00") if days and not zone else text + zone for text in texts]
