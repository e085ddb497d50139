"""The newest rows of a series and their forecast."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from weft.errors import ConfigError, DataError
from weft.figures.records import Forecasted
from weft.tasks.forecast.forecaster import Forecaster
from weft.tasks.forecast.model import SeriesBatch, tensors
from weft.tasks.inspection import Examples, Inspected

if TYPE_CHECKING:
    from weft.data.series import Table
    from weft.tasks.forecast.ready import ForecastPipeline


def inspected(
    pipeline: "ForecastPipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Pipeline.inspected.

    The text is the name of a file of series; without one, the recipe's own series are used.

    The rows after the last one are forecast. If the table lacks the covariates for that, its last rows are
    forecast instead and shown next to the true values.
    """
    if text is not None and not text.strip():
        raise DataError(
            "the text is empty; give a file of series, or leave it out to use the recipe's series"
        )
    if text is not None and (len(text) > 1000 or not Path(text).is_file()):
        raise DataError(f"{text[:60]}: no such file; give a file of series")
    data = pipeline.data
    table = data.table(None if text is None else Path(text))
    windows = data.windows(table)
    every = windows.of(2) if len(windows.of(2)) else windows.of(1)
    number = _number(windows.names, options.get("series"))
    last = every[every[:, 0] == number][-1:]
    if not len(last):
        raise DataError(f"{text or data.name}: no window fits into the series; give longer ones")
    past, _ = tensors(windows, last, next(model.parameters()).device)
    with torch.no_grad():
        best = model.best(past)
    found = _forecast(pipeline.predictor(model).forecaster, table, windows.names[number])
    mask = torch.ones_like(best, dtype=torch.bool)
    return Inspected(
        text=text or f"the newest rows of {data.name}",
        answer=" ".join(f"{value:.4g}" for value in found.best),
        source=[str(n) for n in range(-past.values.shape[1] + 1, 1)],
        target=[f"+{n}" for n in range(1, best.shape[1] + 1)],
        batch=SeriesBatch(past, best, mask, int(mask.sum())),
        forecast=found,
    )


def _forecast(forecaster: Forecaster, table: "Table", name: str) -> Forecasted:
    """The forecast of a series of a table, or of its last rows if the rows after them cannot be forecast."""
    one = forecaster.chosen(table, [name])[0]
    why = forecaster.why_not(one)
    if why and forecaster.data.known:
        return forecaster.last_rows(one)
    if why:
        raise DataError(why)
    return forecaster.forecast(one, quantiles=forecaster.model.has_quantiles)


def _number(names: Sequence[str], wanted: str | None) -> int:
    """The number of the series to inspect.

    Raises:
        ConfigError: no series has that name.
    """
    if wanted is not None and wanted not in names:
        raise ConfigError(f"--series: {wanted!r} is not in the table; it has {', '.join(names)[:300]}")
    return names.index(wanted) if wanted else 0
