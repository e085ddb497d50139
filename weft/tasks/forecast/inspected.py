"""The newest rows of a series and what comes after them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from weft.errors import ConfigError, DataError
from weft.tasks.forecast.model import SeriesBatch
from weft.tasks.forecast.tensors import tensors
from weft.tasks.shared.inspected.inspected import Examples, Inspected
from weft.tasks.whole import Answer

if TYPE_CHECKING:
    from weft.tasks.forecast.task import ForecastTask


def inspected(
    task: "ForecastTask", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Task.inspected.

    The text is a file of series; without one the recipe's own series are taken.

    What comes after the last row is forecast; where that needs covariates that the table does not have, its
    last rows are, beside what came.

    """
    if text is not None and not text.strip():
        raise DataError("the text is empty; a forecaster is given a file of series, or nothing")
    if text is not None and (len(text) > 1000 or not Path(text).is_file()):
        raise DataError(f"{text[:60]}: no such file; give a file of series")
    task, device = task, next(model.parameters()).device
    table = task.data.table(None if text is None else Path(text))
    windows = task.data.windows(table)
    every = windows.of(2) if len(windows.of(2)) else windows.of(1)
    number = _number(windows.names, options.get("series"))
    last = every[every[:, 0] == number][-1:]
    if not len(last):
        raise DataError(f"{text or task.data.name}: no window fits into the series; give longer ones")
    past, _ = tensors(windows, last, device)
    with torch.no_grad():
        best = model.best(past)  # type: ignore[operator]
    forecaster = task.predictor(model)
    try:
        look = _first(forecaster.rows(table, False, bands=True, only=[windows.names[number]]))
    except DataError:
        if not task.data.known:
            raise
        look = forecaster.look_back(table, windows.names[number])  # nothing is known ahead
    mask = torch.ones_like(best, dtype=torch.bool)
    return Inspected(
        text=text or f"the newest rows of {task.data.name}",
        answer=" ".join(f"{value:.4g}" for value in (look.best if look is not None else [])),
        source=[str(n) for n in range(-past.values.shape[1] + 1, 1)],
        target=[f"+{n}" for n in range(1, best.shape[1] + 1)],
        batch=SeriesBatch(past, best, mask, int(mask.sum())),
        forecast=look,
    )


def _number(names: Sequence[str], wanted: str | None) -> int:
    """Which series is looked at.

    Raises:
        ConfigError: there is none of the name.
    """
    if wanted is not None and wanted not in names:
        raise ConfigError(f"--series: {wanted!r} is not in the table; it has {', '.join(names)[:300]}")
    return names.index(wanted) if wanted else 0


def _first(answers: Iterable[Answer]) -> Any:
    """What there is to draw of the first series."""
    return next((answer.look for answer in answers if answer.look is not None), None)
