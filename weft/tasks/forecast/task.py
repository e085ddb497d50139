"""Forecasting: predicts the future of a series from its past, as numbers or as distributions.

Read next: data.py, model.py; ../../nn/forecasters, the models; ../../metrics/baseline.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from weft.data.batching import ShuffledBatches
from weft.data.guess import columns_of, series_of
from weft.data.report import Report
from weft.data.series import SeriesTable
from weft.data.values import readable
from weft.data.windows import SeriesWindows
from weft.errors import ConfigError, DataError, library, within
from weft.figures.records import ForecastRecord
from weft.nn.forecasters.forecaster import Past
from weft.nn.heads.head import Loss, Point, Quantile
from weft.store import jsonfile
from weft.tasks.evaluation import Sample, Validation, samples_of
from weft.tasks.export import ModelExport
from weft.tasks.forecast.data import (
    FORMS,
    ROLES,
    SeriesData,
    check,
    read_facts,
    series_facts,
    short,
    without_meaning,
)
from weft.tasks.forecast.evaluation import MODEL, SCALED, ForecastEvaluation, ScoredWindows, evaluate
from weft.tasks.forecast.forecaster import (
    AnyForecaster,
    CalibratedForecast,
    ForecastEnsemble,
    check_columns,
    check_joins,
    record,
)
from weft.tasks.forecast.model import (
    Baseline,
    ForecastModel,
    ForecastNetwork,
    SeriesBatch,
    fit,
    refitted,
    tensors,
)
from weft.tasks.forecast.predictor import ForecastPredictor, Horizon, export_forecaster, inspect_series
from weft.tasks.inspection import Inspection
from weft.tasks.space import Range, Recipe, Space, usual, whole
from weft.tasks.task import (
    EnsembleSettings,
    EvaluationSettings,
    InspectionSettings,
    OtherRun,
    Pipeline,
    PredictExample,
    PredictionSettings,
    Progress,
    ScoredSettings,
    Scoring,
    Task,
    Training,
)
from weft.wording import plural

PARTS: dict[str, int] = {"train": 0, "valid": 1, "test": 2}


@dataclass(frozen=True, kw_only=True)
class ForecastSettings(EnsembleSettings, ScoredSettings):
    """What the user asks of forecasts."""

    future: Path | None = None  # table of the covariates that are known in advance
    series: Sequence[str] = ()  # names of the series to forecast; all if empty


@dataclass(frozen=True, kw_only=True)
class ForecastEvaluationSettings(EnsembleSettings, EvaluationSettings):
    """What the user asks of the scores of forecasts."""

    series: str | None = None  # the one that is drawn; None takes one in the middle


@dataclass(frozen=True, kw_only=True)
class ForecastInspectionSettings(InspectionSettings):
    """What the user asks of an inspection of forecasts."""

    series: str | None = None


class CutSeries(NamedTuple):
    """The series of a recipe, and their windows."""

    table: SeriesTable
    windows: SeriesWindows


class ForecastTraining(Training):
    """The training windows."""

    def __init__(self, task: "ForecastTask", windows: SeriesWindows, base: Baseline | None) -> None:
        self.base = base
        self.solved = task.model_config.solve
        self._task = task
        self._data = task.data
        self._windows = windows
        self._train = windows.of(PARTS["train"])  # [N, 2]

    def whole(self) -> "ForecastTraining":
        """Its closed form too, unless that has the level."""
        windows = self._windows
        base = self.base and refitted(self.base, windows, self._data.season_of(windows.table))
        found = ForecastTraining(self._task, windows, base)
        found._train = np.concatenate([self._train, self._windows.of(PARTS["valid"])])
        return found

    def plan(self, seed: int) -> ShuffledBatches:
        """All windows in a new order each epoch, or as many as the recipe's `windows_an_epoch`."""
        rows, most = self._data.batch_rows, self._data.windows_an_epoch
        return ShuffledBatches(len(self._train), rows, seed, most=most)

    def collate(self, numbers: np.ndarray) -> SeriesBatch:
        past, future = tensors(self._windows, self._train[numbers], torch.device("cpu"))
        mask = np.isfinite(future)
        values = torch.from_numpy(np.nan_to_num(future)).float()
        return SeriesBatch(past, values, torch.from_numpy(mask), int(mask.sum()))

    def validate(self, model: ForecastNetwork) -> Validation:
        windows, chosen = self._windows, self._windows.of(PARTS["valid"])
        forecasts = ScoredWindows(model, windows, chosen, self._data.season_of(windows.table))
        scores = {
            one.metric.key: float(one.metric.value(rows[MODEL].sum(0)))
            for one, rows in zip(SCALED, forecasts.sums(SCALED).rows, strict=True)
        }
        return Validation(scores, self._samples(model, chosen), forecasts.compared())

    def _samples(self, model: ForecastNetwork, chosen: np.ndarray) -> list[Sample]:
        """Validation samples in the units of the data."""
        shown = chosen[samples_of(len(chosen))]
        found = [record(model, self._windows, one[None], (), quantiles=False) for one in shown]

        def text(values: np.ndarray | None, deviation: float) -> str:
            return "" if values is None else " ".join(readable(value, deviation) for value in values[:8])

        def sample(one: ForecastRecord) -> Sample:
            past, true, best = (text(each, one.deviation) for each in (one.past[-4:], one.actual, one.best))
            return Sample(f"{one.name} after {past}", true, best)

        return [sample(one) for one in found]


class ForecastPipeline(Pipeline):
    """Names and scales of the series of a run; other tables must have the frequency of the training."""

    task: "ForecastTask"
    training: ForecastTraining | None

    def __init__(self, task: "ForecastTask", about: Mapping[str, Any]) -> None:
        self.task = task
        self.about = about if task.data.frequency else {**about, "inferred": True}
        self.data = replace(task.data, frequency=task.data.frequency or about.get("frequency"))
        self._calibrated: CalibratedForecast | None = None  # computed once, from all validation windows

    def model(self) -> ForecastNetwork:
        names, classes = self.about.get("channels", {}).get("names", ()), self.about.get("classes", {})
        seen = sum(len(classes.get(name, name[:1])) for name in names)
        model = self.task.built(len(self.about["names"]), self.about["known"], seen)
        base = None if self.training is None else self.training.base
        if base is not None:
            weight, spread = (torch.from_numpy(one).float() for one in (base.weight, base.spread))
            model.begin_with(weight, spread)
        return model

    def predictor(
        self, model: ForecastNetwork, settings: PredictionSettings | None = None
    ) -> ForecastPredictor:
        """The trained model; `predict(values)` returns the next values."""
        asked = ForecastSettings.of(settings)
        members, scores = asked.ensemble, asked.scores
        if asked.future is not None and not self.data.known:
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
            bands=asked.plot is not None,
            only=asked.series,
            future=asked.future,
            progress=asked.progress,
        )

    def score(self, model: ForecastNetwork, asked: Scoring) -> ForecastEvaluation:
        """Errors on all windows of a split, next to repeat, seasonal and ridge; see Pipeline.evaluate."""
        split, data, how = asked
        members, own = how.ensemble, self.data
        together = self._at_work(model, members)
        for member in members if data is None else ():
            assert isinstance(member.pipeline, ForecastPipeline)  # as _together has checked
            if (split_there := member.pipeline.data.split) != own.split:
                raise ConfigError(
                    f"--ensemble {member.path}: its data.split is {list(split_there)}, here "
                    f"{list(own.split)}, so it may have been trained on rows tested here; name a run with "
                    "the same data.split"
                )
        table = own.table(data, self.about)
        for note in table.assumed if data is not None else ():
            how.progress(note, 0, None)
        check_columns(table, self.about)
        windows = own.windows(table, self.about, whole=data is not None)
        if windows.left_out:
            how.progress(short(windows.left_out), 0, None)
        title = f"{own.name}, {split}" if data is None else f"{data}, all windows"
        title += f", {1 + len(members)} runs together" if members else ""
        if self.task.decoding.conformal:
            part = "this part, so the coverage is fitted" if asked.validation else "the validation part"
            title += f", quantiles calibrated on {part}"
        return evaluate(
            together,
            windows,
            PARTS["test" if data is not None else split],
            trained=windows if data is None else self._trained(how.progress),
            title=title,
            season=own.season_of(table),
            series=how.series,
        )

    def _trained(self, progress: Progress) -> SeriesWindows | None:
        """The windows of the run's own data, for baselines that learn; None if it cannot be read any more."""
        try:
            return self.data.windows(self.data.table(None, self.about), self.about)
        except DataError as error:
            progress(f"without ridge regression, because the run's own data cannot be read: {error}", 0, None)
            return None

    def _at_work(self, model: ForecastNetwork, members: Sequence[OtherRun]) -> AnyForecaster:
        """The model with the members of an ensemble, calibrated if the recipe says so."""
        together = self._together(model, members)
        if not self.task.decoding.conformal:
            return together
        if self.refit:
            raise ConfigError(UNSEEN)
        if self._calibrated is None or self._calibrated.model is not together:
            try:
                windows = self.data.windows(self.data.table(None, self.about), self.about)
            except DataError as error:
                raise DataError(
                    f"decoding.conformal: cannot read the run's validation data: {error}"
                ) from None
            self._calibrated = CalibratedForecast(together, windows)
        return self._calibrated

    def _together(
        self, model: ForecastNetwork, members: Sequence[OtherRun]
    ) -> ForecastNetwork | ForecastEnsemble:
        models, lookbacks = [model], [self.data.lookback]
        for member in members:
            other, own = member.pipeline, member.model
            with within(f"--ensemble {member.path}"):
                if not isinstance(other, ForecastPipeline) or not isinstance(own, ForecastNetwork):
                    raise ConfigError("it is not a run of the task forecast; leave it out")
                check_joins(self.about, self.data, other.about, other.data)
            models.append(own)
            lookbacks.append(other.data.lookback)
        return ForecastEnsemble(models, lookbacks) if members else model

    def inspection(self, model: ForecastNetwork, settings: InspectionSettings) -> Inspection:
        series = ForecastInspectionSettings.of(settings).series
        return inspect_series(self.predictor(model).forecaster, settings.text, series)

    def model_export(self, model: ForecastNetwork) -> ModelExport:
        return export_forecaster(model, self.data, self.about)


KEPT = "series.json"

UNSEEN = (
    "decoding.conformal: true fits the width of intervals to validation windows, which were or would be part "
    "of the training (training.refit); leave one of them out"
)


class ForecastTask(Task):
    """Series to forecasts."""

    sections: ClassVar = {"data": SeriesData, "model": ForecastModel, "decoding": Horizon}
    evaluation: ClassVar = ForecastEvaluation
    samples_readable: ClassVar[bool] = False
    target_unit: ClassVar[str] = "value"
    better: ClassVar = {"mse": "lower", "mae": "lower"}
    unlike: ClassVar[Mapping[str, str]] = dict.fromkeys(better, "scaled by the training part")
    prediction_settings: ClassVar = ForecastSettings
    evaluation_settings: ClassVar = ForecastEvaluationSettings
    inspection_settings: ClassVar = ForecastInspectionSettings
    keeps: ClassVar[Sequence[str]] = (KEPT,)
    note: ClassVar[str] = "Errors are means over all windows of values scaled by the training part."
    suffixes: ClassVar[Sequence[str]] = (".csv", ".parquet", ".tsf")
    check_options: ClassVar[Sequence[str]] = (*ROLES, "target", *FORMS)

    data: SeriesData

    def __init__(self, *, data: SeriesData, model: ForecastModel, decoding: Horizon) -> None:
        library("pandas", "pandas", "task: forecast")
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
        return f"{plural(self.data.horizon, 'step')} ahead, on {self.data.name}"

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        data = self.data
        return None if data.file is None or data.known else PredictExample("", [str(data.folder / data.file)])

    @classmethod
    def search_space(cls, recipe: Recipe) -> Space:
        """How far back it looks, how a window is scaled, and the network."""
        found = usual(recipe)
        lookback, hidden = recipe["data"]["lookback"], recipe["model"]["forecaster"].get("hidden")
        if hidden:
            found["model.forecaster.hidden"] = whole(hidden // 2, hidden * 2)
        found["data.lookback"] = Range(values=(lookback, 2 * lookback, 3 * lookback))
        return {**found, "model.normalise": Range(values=("last", "mean", "mean_std", "none"))}

    def rehearse(self) -> Loss:
        """Three windows of two series, with as many covariates as the recipe has."""
        channels = len(self.data.past) + (2 if self.data.inputs == "all" else 0)
        covariates = len(self.data.columns.ahead) + (4 if self.data.calendar else 0)
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

    def unused(self) -> Sequence[str]:
        """What a solved model does without."""
        return ["model.forecaster", "training"] if self.model_config.solve else ()

    def check_refit(self) -> None:
        """Not a solved one with the level, nor one whose intervals are fitted to validation windows."""
        if self.model_config.solve and self.model_config.base == "level":
            raise ConfigError(
                "model.solve with base: level is fitted to the training part only; leave it out"
            )
        if self.decoding.conformal:
            raise ConfigError(UNSEEN)

    def small_model(self) -> ForecastNetwork:
        return self.built(1, 0, 0)

    def read(self, progress: Progress) -> CutSeries:
        progress("reading the series", 0, None)
        table = self.data.table()
        windows = self.data.windows(table)
        if not len(windows.of(PARTS["valid"])):
            raise DataError(
                f"{self.data.name}: no validation window of horizon {self.data.horizon} fits into the split "
                f"{list(self.data.split)}; give it more rows"
            )
        return CutSeries(table, windows)

    def learn(self, corpus: CutSeries, run: Path, progress: Progress) -> None:
        jsonfile.save(run / KEPT, series_facts(corpus.windows))

    def training(
        self, corpus: CutSeries, pipeline: ForecastPipeline, run: Path, progress: Progress
    ) -> ForecastTraining:
        table, windows = corpus
        train, valid = windows.of(PARTS["train"]), windows.of(PARTS["valid"])
        names = len(windows.names)
        progress(
            f"{names:,} series, {len(train):,} training and {plural(len(valid), 'validation window')}",
            0,
            0,
        )
        left_out = [short(windows.left_out)] if windows.left_out else []
        gaps = [windows.said] if windows.said else []
        idle = without_meaning(windows.unmeasured())
        for note in (*table.assumed, *table.notes, *left_out, *gaps, *idle):
            progress(note, 0, 0)
        base = None
        if self.model_config.base != "none":
            base = fit(windows, self.data.season_of(table), level=self.model_config.base == "level")
            progress(f"the model {'is' if self.model_config.solve else 'starts as'} {base.name}", 0, 0)
        if self.model_config.solve and (windows.known_size or table.past):
            progress("it reads no covariates; model.solve: false trains a network that does", 0, 0)
        return ForecastTraining(self, windows, base)

    def open(self, run: Path) -> ForecastPipeline:
        return ForecastPipeline(self, read_facts(run / KEPT))

    def built(self, series: int, known: int, seen: int) -> ForecastNetwork:
        """A new model."""
        return self.model_config.build(self.data.lookback, self.data.horizon, known, series, seen)

    @classmethod
    def knows(cls, table: Path) -> bool:
        """A column of times and columns of numbers, without texts."""
        columns = columns_of(table)
        found = series_of(columns)
        return (
            found is not None
            and found.time is not None
            and all(one.words < 2 for one in columns if not one.times)
        )

    @classmethod
    def check(cls, files: Sequence[Path], **given: Any) -> Report:
        return check(files, given)
