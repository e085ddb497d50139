"""Outputs and their references, which any metric can score. Read next: metric.py; scored.py."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from weft.metrics.metric import Metric, check_lines
from weft.metrics.scored import ScoreWithBaselines, fingerprint, of_rows

ONE_OF_SEVERAL = "references:the best of each line"


class ComparedOutputs(NamedTuple):
    """Outputs, references, and the outputs of baselines, line by line.

    Fields:
        outputs: [N] texts.
        references: [N] one or more texts for each output.
        sources: [N] inputs, if they are texts.
        baselines: the outputs [N] of each baseline.

    Example:
        >>> from weft.metrics.accuracy import Accuracy
        >>> compared = ComparedOutputs(["a", "b"], [["a"], ["x", "b"]], baselines={"always a": ["a", "a"]})
        >>> found = compared.scored(Accuracy())
        >>> found.value, dict(found.baselines)
        (1.0, {'always a': 0.5})
    """

    outputs: Sequence[str]
    references: Sequence[Sequence[str]]
    sources: Sequence[str] | None = None
    baselines: Mapping[str, Sequence[str]] = {}

    def scored(self, metric: Metric) -> ScoreWithBaselines:
        """The score of the outputs, with its interval and the scores of the baselines.

        A line with several references is compared with the one that gives it the best score.

        Raises:
            DataError: as `Metric.score`.
        """
        self._check()
        lowest = {
            name: float(metric.value(self._statistics(metric, lines).sum(0)))
            for name, lines in self.baselines.items()
        }
        items = fingerprint(reference for references in self.references for reference in references)
        found = of_rows(metric, self._statistics(metric, self.outputs), baselines=lowest, items=items)
        return found.signed(ONE_OF_SEVERAL) if max(map(len, self.references), default=0) > 1 else found

    def value(self, metric: Metric) -> float:
        """The score of the outputs, without interval and baselines."""
        self._check()
        return float(metric.value(self._statistics(metric, self.outputs).sum(0)))

    def _check(self) -> None:
        check_lines(self.outputs, [" ".join(references) for references in self.references], self.sources)

    def _statistics(self, metric: Metric, lines: Sequence[str]) -> np.ndarray:
        """[N, K] statistics of lines against the best of their references."""
        counts = [len(references) for references in self.references]
        rows = metric.rows(
            [line for line, count in zip(lines, counts, strict=True) for _ in range(count)],
            [reference for references in self.references for reference in references],
            None
            if self.sources is None
            else [source for source, count in zip(self.sources, counts, strict=True) for _ in range(count)],
        )
        if max(counts, default=0) < 2:
            return rows
        values = metric.value(rows) * (1 if metric.higher_is_better else -1)
        spans = zip(np.cumsum(counts) - counts, counts, strict=True)
        return rows[[first + int(values[first : first + count].argmax()) for first, count in spans]]


def of_lines(
    outputs: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    baselines: Mapping[str, Sequence[str]] | None = None,
) -> ComparedOutputs:
    """Outputs with one reference each."""
    return ComparedOutputs(outputs, [[reference] for reference in references], sources, baselines or {})
