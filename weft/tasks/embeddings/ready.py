"""Word vectors, made ready: the words of the run, and the text while it is trained.

Read next: predictor.py; evaluation.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from weft.data.questions import read_questions
from weft.errors import ConfigError, DataError
from weft.nn.embed.counts import Cells, Glove
from weft.nn.embed.neighbours import Neighbourhood, Neighbours
from weft.tasks.embeddings.corpus import Corpus, Pieces, Table, Windows, WordList
from weft.tasks.embeddings.data import WordsData
from weft.tasks.embeddings.evaluation import WordsEvaluation, evaluate
from weft.tasks.embeddings.predictor import NEAREST, WordVectors
from weft.tasks.inspection import Examples, Inspected
from weft.tasks.task import Pipeline, Split, Training
from weft.tasks.validation import Sample, Validation, mean_loss, samples_of

if TYPE_CHECKING:
    from weft.tasks.embeddings.task import Embeddings

VALIDATION = 200
"""Number of fixed training pieces whose loss is the validation score; for GloVe 128 times as many cells."""


class EmbeddingsTraining(Training):
    """The training text.

    Args:
        data: the recipe's section `data`.
        words: the words that have vectors.
        corpus: the text as word numbers.
        table: GloVe's co-occurrence counts; None for word2vec.
    """

    def __init__(self, data: WordsData, words: WordList, corpus: Corpus, table: Table | None) -> None:
        self._data = data
        self._words = words
        self._corpus = corpus
        self._table = table
        self._source = self._fixed()  # `plan` replaces word2vec's windows by ones with its seed

    def plan(self, seed: int) -> Pieces:
        """The whole text, or GloVe's table, in a new order each epoch."""
        rows = self._data.rows
        if self._table is not None:
            return Pieces(len(self._table), rows * self._data.length, seed)
        self._source = self._windows(seed)
        return Pieces(len(self._source), rows, seed)

    def collate(self, numbers: np.ndarray) -> Neighbourhood | Cells:
        """Pieces of text, or cells, by number."""
        return self._source.batch(numbers)

    def validate(self, model: nn.Module) -> Validation:
        """The loss on a fixed part of the training text, and the neighbours of some words."""
        assert isinstance(model, Neighbours | Glove)
        vectors = WordVectors(model, self._words, self._data)
        frequent = min(1000, len(vectors.words))
        some = [vectors.words[number] for number in samples_of(frequent)]
        near = [" ".join(one.word for one in vectors.nearest(word, 5)) for word in some]
        return Validation(
            {"loss": self._loss(model)},
            [Sample(word, "", found) for word, found in zip(some, near, strict=True)],
        )

    def _loss(self, model: Neighbours | Glove) -> float:
        source = self._fixed()
        most = VALIDATION * (1 if self._table is None else self._data.length)
        chosen = np.arange(0, len(source), max(1, len(source) // most))[:most]
        parts = np.array_split(chosen, max(1, -(-len(chosen) // max(1, most // 8))))
        return mean_loss(model, (source.batch(part) for part in parts))

    def _fixed(self) -> Windows | Table:
        return self._windows(0) if self._table is None else self._table

    def _windows(self, seed: int) -> Windows:
        data = self._data
        return Windows(
            self._corpus,
            self._words.counts,
            window=data.window,
            subsample=data.subsample,
            length=data.length,
            noise=data.noise,
            seed=seed,
        )


class EmbeddingsPipeline(Pipeline):
    """The words of a run.

    Args:
        task: the recipe.
        words: the words that have vectors.
        training: the text; None unless prepared for training.
    """

    task: "Embeddings"

    def __init__(
        self, task: "Embeddings", words: WordList, *, training: EmbeddingsTraining | None = None
    ) -> None:
        self.task = task
        self.words = words
        self.training = training

    def model(self) -> Neighbours | Glove:
        """A new model for these words."""
        return self.task.model_config.build(self.words.words)

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> WordVectors:
        """The vectors: `nearest("word", 5)`, `vector("word")`, `analogy("a", "b", "c")`.

        Args:
            model: trained.
            options: `nbest`, the number of near words, and `scores`.

        Raises:
            ConfigError: `nbest` is less than 1.
        """
        assert isinstance(model, Neighbours | Glove)
        count = options.get("nbest", NEAREST)
        if count < 1:
            raise ConfigError(f"--nbest: expected at least 1, got {count}")
        scores = bool(options.get("scores"))
        return WordVectors(model, self.words, self.task.data, count=count, scores=scores)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> WordsEvaluation:
        """Similarity of word pairs or analogies, with coverage and baselines."""
        path = data if data is not None else self.task.data.questions(split)
        questions = read_questions(path)
        try:
            return evaluate(self.predictor(model), questions, title=path.name)
        except DataError as error:
            raise DataError(f"{error}; train on more text, or lower data.min_count", path=path) from None

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspected:
        from weft.tasks.embeddings.inspected import inspected

        return inspected(self, model, text, examples, options)
