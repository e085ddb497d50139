"""A trained forecaster: forecasts the next rows of tables of series, or of plain numbers.

Read next: forecaster.py, one series.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple

from weft.data.parquet import as_parquet
from weft.errors import ConfigError, DataError
from weft.figures.records import Forecasted
from weft.tasks import predictor
from weft.tasks.forecast.calibration import Calibrated
from weft.tasks.forecast.data import SeriesData, received
from weft.tasks.forecast.ensemble import Together
from weft.tasks.forecast.forecaster import Chosen, Forecaster
from weft.tasks.forecast.model import Forecast
from weft.tasks.predictor import Answer, Given, Json, Place, Raw, Reads, name_of

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


@dataclass(frozen=True, kw_only=True)
class Horizon:
    """A recipe's section `decoding`: what `weft predict` writes.

    Args:
        levels: of the quantiles that --scores adds.
        conformal: calibrate the quantiles on the validation part of the training data, which must exist
            (calibration.py); this gives a point forecaster quantiles too.
    """

    levels: tuple[float, ...] = (0.1, 0.5, 0.9)
    conformal: bool = False

    def __post_init__(self) -> None:
        if not self.levels or not all(0 < one < 1 for one in self.levels):
            raise ConfigError(f"levels: expected numbers between 0 and 1, got {list(self.levels)}")


class Asked(NamedTuple):
    """Series to forecast."""

    series: Sequence[Chosen]
    zone: str = ""  # UTC offset of their times, such as +00:00
    plain: bool = False  # whether they were given as numbers without times


class ForecastPredictor(predictor.Predictor[Asked]):
    """Forecasts the next rows of series.

    Args:
        model: in evaluation mode; one, or several together.
        data: the recipe's section `data`, for lookback, horizon and columns.
        about: names and scales of the training series.
        decoding: which quantiles.
        scores: whether to write quantiles.
        bands: whether to draw quantiles if the model has them.
        only: names of the series of a table to forecast; if empty, all.
        future: a table with the covariates that are known in advance.
    """

    reads: ClassVar[Reads] = "numbers"
    linewise = False
    window = 1

    def __init__(
        self,
        model: Forecast | Together | Calibrated,
        data: SeriesData,
        about: Mapping[str, Any],
        decoding: Horizon,
        *,
        scores: bool = False,
        bands: bool = False,
        only: Sequence[str] = (),
        future: Path | None = None,
    ) -> None:
        self.forecaster = Forecaster(model, data, about, decoding.levels)
        self._scores = scores
        self._quantiles = (scores or bands) and model.has_quantiles
        self._only = only
        self._future = future

    def parse(self, raw: Raw, place: Place) -> Asked:
        """The values of one series, oldest first; or the text of a CSV table."""
        forecaster = self.forecaster
        if not isinstance(raw, str | bytes):
            asked = Asked([forecaster.of_values(raw, None, {}, {})], plain=True)
        else:
            content = raw.encode("utf-8", "replace") if isinstance(raw, str) else raw
            table = received(content, forecaster.data, str(place))
            asked = Asked(forecaster.chosen(table, self._only), table.zone)
        for one in asked.series:
            if why := forecaster.why_not(one):
                raise place.refuse(why)
        return asked

    def inputs(self, source: Path | BinaryIO) -> Iterator[Given[Asked]]:
        """Each series of a table."""
        forecaster, place = self.forecaster, Place(name_of(source))
        if self._scores and not forecaster.model.has_quantiles:
            raise ConfigError(
                "--scores: a point forecast has no quantiles; calibrate it with --set conformal=true, or "
                "train with the head normal, student or quantile"
            )
        data = forecaster.data
        table = data.table(source) if isinstance(source, Path) else received(source.read(), data)
        if self._future is not None:
            table = data.future(self._future, table)
        chosen = forecaster.chosen(table, self._only)
        wrong = [forecaster.why_not(one) for one in chosen]
        if chosen and all(wrong):  # nothing is written then
            raise place.refuse(wrong[0])
        for one, why in zip(chosen, wrong, strict=True):
            yield Given(place, DataError(why) if why else Asked([one], table.zone))

    def count(self, value: Asked) -> int:
        return len(value.series)

    def answers(self, inputs: Sequence[Asked]) -> Iterator[Forecasts]:
        for asked in inputs:
            found = [self.forecaster.forecast(one, quantiles=self._quantiles) for one in asked.series]
            yield Forecasts(found, asked.zone, quantiles=self._scores, plain=asked.plain)

    def formatted(self, answers: Iterable[Answer]) -> Iterator[tuple[Answer, str | None]]:
        """The first forecast with the table's header before it; a series without a forecast has no rows."""
        above = header(self.forecaster.levels if self._scores else ()) + "\n"
        for answer in answers:
            if answer.wrong:
                yield answer, None
            else:
                yield answer, above + answer.text()
                above = ""

    def file(self, texts: Sequence[str], output: Path) -> bytes:
        """CSV, or Parquet if the extension says so."""
        text = super().file(texts, output)
        return as_parquet(text, output) if output.suffix.lower() == ".parquet" else text

    def check_figures(self, *, alignments: bool) -> None:
        if alignments:
            super().check_figures(alignments=True)

    def predict(
        self,
        raw: Sequence[float],
        name: str | None = None,
        *,
        known: Mapping[str, Sequence[float]] = {},
        past: Mapping[str, Sequence[float]] = {},
    ) -> list[float]:
        """The next `horizon` values of one series.

        Args:
            raw: at least `lookback` values, oldest first.
            name: of the series, as in training; None uses the scale of the first series.
            known: covariates that are known in advance, by name, with `horizon` values more than `raw`.
            past: covariates whose future is unknown, with as many values as `raw`.

        Raises:
            DataError: too few values, or covariates that are missing, too few or too many.
            ConfigError: the model requires dates or other series; give it a table.
        """
        found = self.forecaster.forecast(self.forecaster.of_values(raw, name, known, past), quantiles=False)
        return [float(value) for value in found.best]
