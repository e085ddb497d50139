"""Forecasting: predicts the future of a series from its past, as numbers or as distributions.

Read next: data.py, model.py; ../nn/forecasters, the models; ../metrics/series.py, baselines.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import torch

from weft.data.report import Report
from weft.errors import ConfigError, DataError, ShapeError
from weft.nn.forecasters.forecaster import Past
from weft.nn.heads.head import Loss
from weft.nn.heads.point import Point
from weft.nn.heads.quantile import Quantile
from weft.store import jsonfile
from weft.tasks.forecast.baseline import fit
from weft.tasks.forecast.check import check
from weft.tasks.forecast.data import SeriesData, read_facts, series_facts
from weft.tasks.forecast.evaluation import ForecastEvaluation
from weft.tasks.forecast.model import Forecast, ForecastModel, SeriesBatch
from weft.tasks.forecast.predictor import Horizon
from weft.tasks.forecast.ready import PARTS, ForecastPipeline, ForecastTraining
from weft.tasks.forecast.space import space
from weft.tasks.space import Recipe, Space
from weft.tasks.task import Progress, Split, Task
from weft.wording import plural

KEPT = "series.json"


class ForecastTask(Task):
    """Series to forecasts.

    Args:
        data: series and windows.
        model: forecaster and head.
        decoding: the quantiles to write.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": SeriesData, "model": ForecastModel, "decoding": Horizon}
    evaluation: ClassVar = ForecastEvaluation
    samples_readable: ClassVar[bool] = False
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {"mse": "lower", "mae": "lower"}
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": ("scores", "plot", "ensemble", "future", "series"),
        "evaluate": ("ensemble", "series"),
        "inspect": ("series",),
    }
    keeps: ClassVar[Sequence[str]] = (KEPT,)
    note: ClassVar[str] = "Errors are means over all windows of values scaled by the training part."
    suffixes: ClassVar[Sequence[str]] = (".csv", ".parquet")

    def __init__(self, *, data: SeriesData, model: ForecastModel, decoding: Horizon) -> None:
        self.data = data
        self.model_config = model
        self.decoding = decoding

    @property
    def loss_unit(self) -> str:
        """The head's unit, for scaled values."""
        head = self.model_config.head(1)
        if isinstance(head, Point):
            return f"{head.error} error"
        return "pinball loss" if isinstance(head, Quantile) else "nats"

    def about(self) -> str:
        """The series and the horizon."""
        return f"{plural(self.data.horizon, 'step')} ahead, on {self.data.name}"

    @classmethod
    def search_space(cls, recipe: Recipe) -> Space:
        return space(recipe)

    def has(self, split: Split) -> bool:
        return self.data.split[PARTS[split]] > 0

    def rehearse(self) -> Loss:
        """Three windows of two series, with as many covariates as the recipe has."""
        channels = len(self.data.past) + (2 if self.data.inputs == "all" else 0)
        covariates = len(self.data.known) + (4 if self.data.calendar else 0)
        model = self.built(2, covariates, channels)
        generator = torch.Generator().manual_seed(1)
        values = torch.randn(3, self.data.lookback, generator=generator)
        future = torch.randn(3, self.data.horizon, generator=generator)
        known = values.new_zeros(3, self.data.lookback + self.data.horizon, covariates)
        seen = values[..., None].expand(-1, -1, channels)
        past = Past(values, known, torch.tensor([0, 1, 1]), seen)
        return model.loss(
            SeriesBatch(past, future, torch.ones_like(future, dtype=torch.bool), future.numel())
        )

    def check_ready(self) -> None:
        """Check that the file exists and that the parts fit together."""
        try:
            self.built(1, 0, 0)
        except (ConfigError, ShapeError) as error:
            raise ConfigError(f"model: {error}") from error
        if self.data.file is not None and not (self.data.folder / self.data.file).exists():
            raise DataError("no such file; check data.file", path=self.data.folder / self.data.file)

    def prepare(self, run: Path, progress: Progress) -> ForecastPipeline:
        """Read the series and save their names and scales in the run."""
        progress("reading the series", 0, None)
        table = self.data.table()
        windows = self.data.windows(table)
        train, valid = windows.of(PARTS["train"]), windows.of(PARTS["valid"])
        if not len(valid):
            raise DataError(
                f"{self.data.name}: no validation window of horizon {self.data.horizon} fits into the split "
                f"{list(self.data.split)}; give it more rows"
            )
        found = series_facts(windows)
        jsonfile.save(run / KEPT, found)
        names = len(windows.names)
        progress(
            f"{names:,} series, {len(train):,} training and {plural(len(valid), 'validation window')}",
            0,
            0,
        )
        for note in table.notes:
            progress(note, 0, 0)
        base = None
        if self.model_config.base != "none":
            base = fit(windows, self.data.season_of(table), level=self.model_config.base == "level")
            progress(f"the model starts as {base.name}", 0, 0)
        return ForecastPipeline(self, found, base=base, training=ForecastTraining(self, windows))

    def open(self, run: Path) -> ForecastPipeline:
        """Read names and scales of the series."""
        return ForecastPipeline(self, read_facts(run / KEPT))

    def built(self, series: int, known: int, seen: int) -> Forecast:
        """A new model.

        Args:
            series: number of series.
            known: number of features of the covariates that are known in advance.
            seen: number of additional columns.
        """
        return self.model_config.build(self.data.lookback, self.data.horizon, known, series, seen)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Report every problem in files of series."""
        return check(files)
