"""Forecasting, made ready: names and scales of the series of a run, and its windows while it is trained.

Read next: predictor.py; evaluation.py; ensemble.py, several runs together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from weft.data.batching import ShuffledBatches
from weft.data.windows import Windows
from weft.errors import ConfigError, DataError, within
from weft.tasks.exported import Exported
from weft.tasks.forecast.baseline import Baseline
from weft.tasks.forecast.calibration import Calibrated
from weft.tasks.forecast.data import scales_of
from weft.tasks.forecast.ensemble import Together, see_that_it_joins
from weft.tasks.forecast.evaluation import ForecastEvaluation, evaluate, mean_squared
from weft.tasks.forecast.forecaster import check_columns
from weft.tasks.forecast.model import Forecast, SeriesBatch, tensors
from weft.tasks.forecast.predictor import ForecastPredictor
from weft.tasks.inspection import Examples, Inspected
from weft.tasks.task import Pipeline, Split, Training
from weft.tasks.validation import Sample, Validation, samples_of

if TYPE_CHECKING:
    from weft.tasks.forecast.task import ForecastTask

PARTS: dict[str, int] = {"train": 0, "valid": 1, "test": 2}


class ForecastTraining(Training):
    """The training windows.

    Args:
        task: the recipe.
        windows: of the recipe's series.
    """

    def __init__(self, task: "ForecastTask", windows: Windows) -> None:
        self._data = task.data
        self._windows = windows
        self._train = windows.of(PARTS["train"])  # [N, 2]

    def plan(self, seed: int) -> ShuffledBatches:
        """All windows in a new order each epoch, or as many as the recipe's `windows_an_epoch`."""
        rows, most = self._data.batch_rows, self._data.windows_an_epoch
        return ShuffledBatches(len(self._train), rows, seed, most=most)

    def collate(self, numbers: np.ndarray) -> SeriesBatch:
        past, future = tensors(self._windows, self._train[numbers], torch.device("cpu"))
        mask = np.isfinite(future)
        values = torch.from_numpy(np.nan_to_num(future)).float()
        return SeriesBatch(past, values, torch.from_numpy(mask), int(mask.sum()))

    def validate(self, model: nn.Module) -> Validation:
        """Errors over all validation windows."""
        assert isinstance(model, Forecast)
        chosen = self._windows.of(PARTS["valid"])
        errors = mean_squared(model, self._windows, chosen)
        return Validation({"mse": errors.squared, "mae": errors.absolute}, self._samples(model, chosen))

    def _samples(self, model: Forecast, chosen: np.ndarray) -> list[Sample]:
        """Validation samples in the units of the data."""
        shown = chosen[samples_of(len(chosen))]
        past, future = tensors(self._windows, shown, next(model.parameters()).device)
        best = model.best(past).double().cpu().numpy()
        scale = self._windows.scale

        def text(values: np.ndarray, number: int) -> str:
            return " ".join(f"{value:.4g}" for value in values[:8] * scale.std[number] + scale.mean[number])

        return [
            Sample(
                f"{self._windows.names[n]} after {text(past.values[row, -4:].double().cpu().numpy(), n)}",
                text(future[row], n),
                text(best[row], n),
            )
            for row, n in enumerate(shown[:, 0].tolist())
        ]


class ForecastPipeline(Pipeline):
    """Names and scales of the series of a run.

    Args:
        task: the recipe.
        about: names and scales (about.py).
        base: the closed-form forecaster that a new model starts from, or None.
        training: the windows; None unless prepared for training.

    Attributes:
        data: the recipe's section; other tables must have the frequency of the training.
    """

    task: "ForecastTask"

    def __init__(
        self,
        task: "ForecastTask",
        about: Mapping[str, Any],
        *,
        base: Baseline | None = None,
        training: ForecastTraining | None = None,
    ) -> None:
        self.task = task
        self.about = about
        self.training = training
        self.data = replace(task.data, frequency=task.data.frequency or about.get("frequency"))
        self._base = base
        self._calibrated: Calibrated | None = None  # computed once, from all validation windows

    def model(self) -> Forecast:
        """A new model for these series."""
        seen = len(self.about.get("channels", {}).get("names", ()))
        model = self.task.built(len(self.about["names"]), self.about["known"], seen)
        if self._base is not None:
            weight, spread = (torch.from_numpy(one).float() for one in (self._base.weight, self._base.spread))
            model.begin_with(weight, spread)
        return model

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> ForecastPredictor:
        """The trained model; `predict(values)` returns the next values.

        Raises:
            ConfigError: a member of the ensemble belongs to another task or forecasts something else; a point
                forecaster has no quantiles; a future is given that the model does not read.
        """
        members, scores = options.get("ensemble", ()), bool(options.get("scores"))
        if options.get("future") is not None and not self.data.known:
            raise ConfigError("--future: this model reads no covariates of the future; leave it out")
        for member in members if scores else ():
            if not self.task.decoding.conformal and not member.model.has_quantiles:
                raise ConfigError(
                    f"--ensemble {member.path}: a point forecast has no quantiles; leave it out, or --scores"
                )
        return ForecastPredictor(
            self._at_work(model, members),
            self.data,
            self.about,
            self.task.decoding,
            scores=scores,
            bands=bool(options.get("plot")),
            only=options.get("series", ()),
            future=options.get("future"),
        )

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> ForecastEvaluation:
        """Errors on all windows of a split, next to repeat, seasonal and ridge; see Pipeline.evaluate."""
        members, own = options.get("ensemble", ()), self.data
        together = self._at_work(model, members)
        for member in members if data is None else ():
            if member.task.data.split != own.split:
                raise ConfigError(
                    f"--ensemble {member.path}: its data.split is {list(member.task.data.split)}, here "
                    f"{list(own.split)}, so it may have been trained on rows tested here; name a run with "
                    "the same data.split"
                )
        table = own.table(data)
        check_columns(table, self.about)
        windows = own.windows(table, scales_of(self.about))
        title = f"{data or own.name}, {split}"
        title += f", {1 + len(members)} runs together" if members else ""
        title += ", quantiles calibrated on the validation part" if self.task.decoding.conformal else ""
        season, series = own.season_of(table), options.get("series")
        return evaluate(together, windows, PARTS[split], title=title, season=season, series=series)

    def _at_work(self, model: nn.Module, members: Sequence[Any]) -> Forecast | Together | Calibrated:
        """The model with the members of an ensemble, calibrated if the recipe says so."""
        together = self._together(model, members)
        if not self.task.decoding.conformal:
            return together
        if self._calibrated is None or self._calibrated.model is not together:
            try:
                windows = self.data.windows(self.data.table(), scales_of(self.about))
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
                if not isinstance(member.pipeline, ForecastPipeline):
                    raise ConfigError("it is not a run of the task forecast; leave it out")
                see_that_it_joins(self.about, self.data, member.pipeline.about, member.pipeline.data)
        if not members:
            return model
        lookbacks = [self.data.lookback, *(member.pipeline.data.lookback for member in members)]
        return Together([model, *(member.model for member in members)], lookbacks)

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspected:
        from weft.tasks.forecast.inspected import inspected

        return inspected(self, model, text, examples, options)

    def exported(self, model: nn.Module) -> Exported:
        from weft.tasks.forecast.exported import exported

        return exported(self, model)
