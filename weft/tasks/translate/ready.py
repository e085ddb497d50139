"""Translation, made ready: the vocabularies and pairs of seq2seq/pairs.py, with the scores."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import nn

from weft.errors import DataError
from weft.tasks.predictor import Predictor
from weft.tasks.seq2seq.documents import Splitting
from weft.tasks.seq2seq.evaluation import PairEvaluation, evaluate
from weft.tasks.seq2seq.pairs import PairPipeline
from weft.tasks.seq2seq.scoring import GivenScores
from weft.tasks.task import Split


class TranslatePipeline(PairPipeline):
    """The vocabularies of a translator."""

    def directions(self) -> Sequence[tuple[str, str]]:
        return [(self.task.data.source, self.task.data.target)]

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Predictor[str]:
        """The trained model; with the option `split_sentences` for lines of several sentences."""
        found = self.searcher(model, options)
        return Splitting(found, *self.directions()[0]) if options.get("split_sentences") else found

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> PairEvaluation | GivenScores:
        """BLEU, chrF, METEOR and perplexity.

        With the option `score`, a file, the result is the log-probability of each of its lines instead.

        `data` is a prefix of files, or a .tsv. The baseline "nearest training sentence" is left out if the
        training data is missing.
        """
        pairs = self.pairs(split, data)
        if "score" in options:
            return self.given_scores(model, pairs, options)
        train = None
        with suppress(DataError):
            train = self.task.data.complete("train")
        return evaluate(
            self.searcher(model, options),
            *pairs,
            title=self.title(split, data, pairs),
            train=train,
            lowercase=options.get("lowercase", False),
        )
