"""Summarisation, made ready: the vocabularies and pairs of seq2seq/pairs.py, with the scores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from weft.tasks.seq2seq.pairs import PairPipeline
from weft.tasks.seq2seq.scoring import GivenScores
from weft.tasks.summarise.evaluation import SummaryEvaluation, evaluate
from weft.tasks.task import Split


class SummarisePipeline(PairPipeline):
    """The vocabularies of a summariser."""

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> SummaryEvaluation | GivenScores:
        """ROUGE, next to the lead sentence and the first words.

        With the option `score`, a file, the result is the log-probability of each of its lines instead.
        """
        pairs = self.pairs(split, data)
        if "score" in options:
            return self.given_scores(model, pairs, options)
        title = self.title(split, data, pairs)
        return evaluate(self.searcher(model, options), *pairs, title=title)
