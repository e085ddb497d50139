"""M10, forecasting: the past of a series becomes its future, as numbers or as distributions.

Read next: data.py, model.py; ../nn/forecasters, the models; ../metrics/series.py, baselines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from weft import jsonfile
from weft.data.parquet import as_parquet
from weft.data.report import Report
from weft.data.windows import Windows
from weft.errors import ConfigError, DataError, ShapeError, within
from weft.nn.forecasters.forecaster import Past
from weft.nn.heads.head import Loss
from weft.nn.heads.point import Point
from weft.nn.heads.quantile import Quantile
from weft.tasks.forecast.about import about, read, scales_of
from weft.tasks.forecast.baseline import Baseline, fit
from weft.tasks.forecast.calibration import Calibrated
from weft.tasks.forecast.check import check
from weft.tasks.forecast.data import SeriesData, received
from weft.tasks.forecast.ensemble import Together, see_that_it_joins
from weft.tasks.forecast.evaluation import ForecastEvaluation, evaluate, mean_squared
from weft.tasks.forecast.model import Forecast, ForecastModel, SeriesBatch
from weft.tasks.forecast.plan import WindowPlan
from weft.tasks.forecast.predictor import Horizon, SeriesForecaster, check_columns
from weft.tasks.forecast.tensors import tensors
from weft.tasks.ready import Ready, Split
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole

PARTS: dict[str, int] = {"train": 0, "valid": 1, "test": 2}


class ForecastTask(Whole):
    """Series to forecasts.

    Args:
        data: which series, which windows.
        model: which forecaster, which head.
        decoding: which quantiles are written.
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
    keeps: ClassVar[Sequence[str]] = ("series.json",)
    note: ClassVar[str] = "Errors are means over all windows of values scaled by the training part."
    suffixes: ClassVar[Sequence[str]] = (".csv", ".parquet")

    def __init__(self, *, data: SeriesData, model: ForecastModel, decoding: Horizon) -> None:
        self.data = data
        self.parts = model
        self.decoding = decoding
        self.windows: Windows
        self.about_series: dict[str, Any]
        self._train_windows: np.ndarray  # [N, 2]
        self._base: Baseline | None = None
        self._calibrated: Calibrated | None = None

    @property
    def loss_unit(self) -> str:
        """Of the head; values are scaled."""
        head = self.parts.head(1)
        if isinstance(head, Point):
            return f"{head.error} error"
        return "pinball loss" if isinstance(head, Quantile) else "nats"

    def about(self) -> str:
        """The series and the horizon."""
        return f"{self.data.horizon} steps ahead, on {self.data.name}"

    def has(self, split: Split) -> bool:
        return self.data.split[PARTS[split]] > 0

    def rehearse(self) -> Loss:
        """Three windows of two series, with as many covariates as the recipe has."""
        channels = len(self.data.past) + (2 if self.data.inputs == "all" else 0)
        covariates = len(self.data.known) + (4 if self.data.calendar else 0)
        model = self._built(2, covariates, channels)
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
        """See that the file is there and the parts fit."""
        try:
            self._built(1, 0, 0)
        except (ConfigError, ShapeError) as error:
            raise ConfigError(f"model: {error}") from error
        if self.data.file is not None and not (self.data.folder / self.data.file).exists():
            raise DataError("no such file; check data.file", path=self.data.folder / self.data.file)

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Read the series; their names and scales are kept in the run."""
        progress("reading the series", 0, None)
        table = self.data.table()
        self.windows = self.data.windows(table)
        train, valid = self.windows.of(0), self.windows.of(1)
        self._train_windows = train
        if not len(valid):
            raise DataError(
                f"{self.data.name}: no validation window of horizon {self.data.horizon} fits into the split "
                f"{list(self.data.split)}; give it more rows"
            )
        self.about_series = about(self.windows)
        self._settle()
        jsonfile.save(run / "series.json", self.about_series)
        names = len(self.windows.names)
        progress(f"{names:,} series, {len(train):,} training and {len(valid):,} validation windows", 0, 0)
        for note in table.notes:
            progress(note, 0, 0)
        if self.parts.base == "linear":
            self._base = fit(self.windows, self.data.season_of(table))
            progress(f"it begins with {self._base.name}", 0, 0)
        return self

    def _settle(self) -> None:
        """From now on tables must come at the frequency of the training."""
        if self.data.frequency is None and self.about_series.get("frequency"):
            self.data = replace(self.data, frequency=self.about_series["frequency"])

    def open(self, run: Path) -> Ready:
        """Read names and scales of the series."""
        self.about_series = read(run / "series.json")
        self._settle()
        return self

    def model(self) -> Forecast:
        """A new model for these series."""
        seen = len(self.about_series.get("channels", {}).get("names", ()))
        model = self._built(len(self.about_series["names"]), self.about_series["known"], seen)
        if self._base is not None:
            weight, spread = (torch.from_numpy(part).float() for part in self._base[1:])
            model.begin_with(weight, spread)
        return model

    def plan(self, seed: int) -> WindowPlan:
        """All training windows in a new order each epoch, or as many as an epoch shall have."""
        return WindowPlan(
            len(self._train_windows), rows=self.data.batch_rows, most=self.data.windows_an_epoch, seed=seed
        )

    def collate(self, numbers: np.ndarray) -> SeriesBatch:
        """Training windows by number."""
        past, future = tensors(self.windows, self._train_windows[numbers], torch.device("cpu"))
        mask = np.isfinite(future)
        values = torch.from_numpy(np.nan_to_num(future)).float()
        return SeriesBatch(past, values, torch.from_numpy(mask), int(mask.sum()))

    def validate(self, model: nn.Module) -> Validation:
        """Errors over all validation windows."""
        assert isinstance(model, Forecast)
        chosen = self.windows.of(1)
        errors = mean_squared(model, self.windows, chosen)
        return Validation({"mse": errors.squared, "mae": errors.absolute}, self._samples(model, chosen))

    def predictor(self, model: nn.Module, members: Sequence[Any] = ()) -> SeriesForecaster:
        """The trained model at work: `predict(values)` gives the next ones.

        Args:
            model: in evaluation mode.
            members: opened runs that forecast along; the mean of all is answered.

        Raises:
            ConfigError: a member is another kind of run, or does not forecast the same.
        """
        return SeriesForecaster(self._at_work(model, members), self.data, self.about_series, self.decoding)

    def _at_work(self, model: nn.Module, members: Sequence[Any]) -> Forecast | Together | Calibrated:
        """With the members of an ensemble, calibrated where that is asked for."""
        together = self._together(model, members)
        if not self.decoding.conformal:
            return together
        if self._calibrated is None or self._calibrated.model is not together:
            try:
                windows = self.data.windows(self.data.table(), scales_of(self.about_series))
            except DataError as error:
                raise DataError(
                    f"decoding.conformal: cannot read the run's validation data: {error}"
                ) from None
            self._calibrated = Calibrated(together, windows)
        return self._calibrated

    def _together(self, model: nn.Module, members: Sequence[Any]) -> Forecast | Together:
        assert isinstance(model, Forecast)
        for member in members:
            with within(f"--ensemble {member.path}"):
                if not isinstance(member.task, ForecastTask):
                    raise ConfigError("is no run of the task forecast; leave it out")
                see_that_it_joins(self.about_series, self.data, member.task.about_series, member.task.data)
        if not members:
            return model
        lookbacks = [self.data.lookback, *(member.task.data.lookback for member in members)]
        return Together([model, *(member.model for member in members)], lookbacks)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """A CSV with the next `horizon` rows of every series of a table; with --scores, quantiles too."""
        table = self.data.table(source) if isinstance(source, Path) else received(source.read(), self.data)
        if options.get("future") is not None:
            if not self.data.known:
                raise ConfigError(
                    "--future: this model reads no covariates that are known ahead; leave it out"
                )
            table = self.data.future(options["future"], table)
        predictor = self.predictor(model, options.get("ensemble", ()))
        for member in options.get("ensemble", ()) if options.get("scores") else ():
            if not self.decoding.conformal and not member.model.has_quantiles:
                raise ConfigError(
                    f"--ensemble {member.path}: a point forecast has no quantiles; leave it out, or --scores"
                )
        scores, only = bool(options.get("scores")), options.get("series", ())
        name = source if isinstance(source, Path) else "standard input"
        for answer in predictor.rows(table, scores, bands=bool(options.get("plot")), only=only):
            yield answer._replace(
                wrong="\n".join(f"{name}: {one}" for one in filter(None, answer.wrong.split("\n")))
            )

    def file(self, answers: Sequence[str], output: Path) -> bytes:
        """CSV, or Parquet where the ending says so; see Task.file."""
        text = super().file(answers, output)
        return as_parquet(text, output) if output.suffix.lower() == ".parquet" else text

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> ForecastEvaluation:
        """Errors over all windows of a split, beside repeat, seasonal and ridge; see Task.evaluate."""
        members = options.get("ensemble", ())
        together = self._at_work(model, members)
        for member in members if data is None else ():
            if member.task.data.split != self.data.split:
                raise ConfigError(
                    f"--ensemble {member.path}: its parts are {list(member.task.data.split)}, here "
                    f"{list(self.data.split)}, so it may have learnt from rows tested here; name a run with "
                    "the same data.split"
                )
        table = self.data.table(data)
        check_columns(table, self.about_series)
        windows = self.data.windows(table, scales_of(self.about_series))
        title = f"{data or self.data.name}, {split}"
        title += f", {1 + len(members)} runs together" if members else ""
        title += ", quantiles calibrated on the validation part" if self.decoding.conformal else ""
        season, series = self.data.season_of(table), options.get("series")
        return evaluate(together, windows, PARTS[split], title=title, season=season, series=series)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Everything that is wrong with CSV files of series."""
        return check(files)

    def _built(self, series: int, known: int, seen: int) -> Forecast:
        return self.parts.build(self.data.lookback, self.data.horizon, known, series, seen)

    def _samples(self, model: Forecast, chosen: np.ndarray) -> list[Sample]:
        """In the units of the data."""
        shown = chosen[samples_of(len(chosen))]
        past, future = tensors(self.windows, shown, next(model.parameters()).device)
        best = model.best(past).double().cpu().numpy()
        scale = self.windows.scale

        def told(values: np.ndarray, number: int) -> str:
            return " ".join(f"{value:.4g}" for value in values[:8] * scale.std[number] + scale.mean[number])

        return [
            Sample(
                f"{self.windows.names[n]} after {told(past.values[row, -4:].double().cpu().numpy(), n)}",
                told(future[row], n),
                told(best[row], n),
            )
            for row, n in enumerate(shown[:, 0].tolist())
        ]
