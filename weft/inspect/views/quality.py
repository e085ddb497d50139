"""A score for short and long inputs, on the test split; only on request, since it scores all of it."""

from collections.abc import Iterable, Sequence

import numpy as np

from weft.errors import ConfigError
from weft.figures.records import Figure
from weft.inspect.views.view import Block, View, chart, said, series
from weft.metrics.bylength import LengthRow
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection


class QualityView(View):
    """Score by source length (needs the test split)."""

    title = "Quality by length"
    order = 80

    def __init__(self, name: str, title: str, length: str, rows: Sequence[LengthRow]) -> None:
        self.name, self.tested, self.length, self.rows = name, title, length, rows
        self.unit = length.partition(" ")[0]

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "QualityView | None":
        """Never by itself; see `score`."""
        return None

    def blocks(self) -> list[Block]:
        rows = [(n, row) for n, row in enumerate(self.rows) if row.score is not None]
        at = np.array([n for n, _ in rows])
        scores = [row.score for _, row in rows if row.score is not None]
        lines = [series(scores[0].name if scores else "score", at, [score.value for score in scores])]
        ends: list[tuple[str, list[float]]] = [
            ("low end of 95 %", [score.low or 0.0 for score in scores]),
            ("high end of 95 %", [score.high or 0.0 for score in scores]),
        ]
        lines += [series(name, at, values, dashed=True, faint=True) for name, values in ends]
        table = [list(map(_shown, row)) for row in list(self.table())[1:]]
        return [
            said(self.tested),
            chart(f"By {self.length}", self.unit, "score", lines, labels=[row.label for row in self.rows]),
            {"kind": "table", "head": [self.unit, "sentences", "score", "low", "high"], "rows": table},
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield self.unit, "sentences", "score", "low", "high"
        for row in self.rows:
            score = row.score
            numbers = ("", "", "") if score is None else (score.value, score.low, score.high)
            yield row.label, row.sentences, *numbers

    def figure(self) -> "Figure":
        from weft.figures.charts import quality_by_length

        return quality_by_length(self.rows, title=self.tested, x=self.length)


def score(opened: LoadedRun) -> QualityView:
    """Score the test split of a run's data."""
    if not opened.task.evaluation.length:
        raise ConfigError(f"--evaluate: a run of {opened.name} has no score by length; leave it out")
    found = opened.pipeline.evaluate(opened.model)
    return QualityView(opened.path.resolve().name, found.title, found.length, found.lengths)


def _shown(value: object) -> object:
    return f"{value:.2f}" if isinstance(value, float) else value
